// SPDX-License-Identifier: Apache-2.0
// Reading files that strangers put in our way: a pipe must not hang us, a device file must not feed us for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "discover/refusal.h"

namespace backplane {

class File {
 public:
  File() = default;
  ~File();
  File(const File&) = delete;

  // Never blocks. BP_REFUSED_MISSING with the system's reason.
  Refusal open(const std::filesystem::path& path);
  bool regular() const { return regular_; }
  uint64_t size() const { return size_; }
  int64_t modified_ns() const { return modified_ns_; }
  // Bytes read: fewer than `bytes` at the end of the file or on an error.
  size_t read(uint64_t offset, void* out, size_t bytes) const;

 private:
  int descriptor_ = -1;
  bool regular_ = false;
  uint64_t size_ = 0;
  int64_t modified_ns_ = 0;
};

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Reads untrusted files. Opening a pipe must not block, a device file must not be read endlessly, and the file that was
// checked must be the file that is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "discover/refusal.h"

namespace backplane {

// Identifies a file and its state. Every write to the file and every replacement changes these facts, unless it follows
// the previous one within a step of the file system's clock. A user who restores size and modification time cannot
// restore `changed_ns`, which only root can set.
struct FileFacts {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0, changed_ns = 0;

  bool operator==(const FileFacts&) const = default;
  std::string text() const;
};

// The facts of the file at `path`; all zero if there is none.
FileFacts facts_of(const std::filesystem::path& path);

class File {
 public:
  File() = default;
  ~File();
  File(const File&) = delete;

  // Never blocks. The text of BP_REFUSED_MISSING contains the system's reason.
  Refusal open(const std::filesystem::path& path);
  int descriptor() const { return descriptor_; }
  bool regular() const { return regular_; }
  uint64_t size() const { return facts_.size; }
  const FileFacts& facts() const { return facts_; }  // the facts when the file was opened
  FileFacts facts_now() const;
  // Returns the number of bytes read: less than `bytes` at the end of the file or after an error.
  size_t read(uint64_t offset, void* out, size_t bytes) const;
  // Reads the file to find out whether it has no bytes. Files in /proc have the size 0, but are not empty.
  bool is_empty() const;

 private:
  int descriptor_ = -1;
  bool regular_ = false;
  FileFacts facts_;
};

}  // namespace backplane

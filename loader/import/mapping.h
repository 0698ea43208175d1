// SPDX-License-Identifier: Apache-2.0
// A file's bytes, mapped for reading. If another process truncates the file later, reading the lost pages raises
// SIGBUS, as with every mapped file. Nothing can prevent that.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "import/read_ahead.h"

namespace backplane::model {

class Mapping {
 public:
  // Regular files only. An empty file is refused.
  static Result<std::shared_ptr<const Mapping>> open(const std::string& path);
  // Like `open`, for a path that contained no symbolic link when it was resolved. A link created since then is not
  // followed. Where openat2 is missing (Linux before 5.6, some sandboxes), a link that replaced a folder is followed.
  static Result<std::shared_ptr<const Mapping>> open_canonical(const std::string& path);
  // The caller keeps ownership of the descriptor, which stays open.
  static Result<std::shared_ptr<const Mapping>> of_descriptor(int descriptor);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::string_view bytes() const { return {data_, size_}; }

 private:
  Mapping(const char* data, size_t size, int descriptor) : data_(data), size_(size), read_ahead_(descriptor, size) {}
  static Result<std::shared_ptr<const Mapping>> map(int descriptor, const std::string& name);
  static Result<std::shared_ptr<const Mapping>> map_and_close(int descriptor, const std::string& path);

  const char* data_;
  size_t size_;
  ReadAhead read_ahead_;
};

}  // namespace backplane::model

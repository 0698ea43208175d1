// SPDX-License-Identifier: Apache-2.0
// A shared library for one image format. It is opened for the first image of that format and stays open, so a process
// without such images does not map it. The dynamic linker searches for its soname, as for libraries that are linked.
#pragma once

#include <dlfcn.h>

#include <optional>
#include <string>

#include "kernels/image/codecs/codec.h"

namespace backplane::cpu::image {

// A codec's library is a class derived from this one, with a member for each function that the codec calls:
//   IMAGE_FUNCTION(jpeg_std_error);
class Library {
 public:
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  // Why the library cannot be used, or nullopt. The functions may be called only if it is nullopt.
  const Problem& problem() const { return problem_; }

 protected:
  explicit Library(const char* soname) : handle_(dlopen(soname, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) problem_ = std::string("a library is missing; install it: ") + dlerror();
  }
  ~Library() = default;

  template <class Function>
  Function* find(const char* name) {
    void* const found = handle_ == nullptr ? nullptr : dlsym(handle_, name);
    if (found == nullptr && !problem_) problem_ = std::string("a library is of another version: ") + dlerror();
    return reinterpret_cast<Function*>(found);
  }

 private:
  void* handle_;
  Problem problem_;
};

#define IMAGE_FUNCTION(name) decltype(::name)* const name = find<decltype(::name)>(#name)

}  // namespace backplane::cpu::image

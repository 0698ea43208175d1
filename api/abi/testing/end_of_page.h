// SPDX-License-Identifier: Apache-2.0
// Memory that is followed by an inaccessible page, so that an access beyond its end crashes.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <new>

#include "backplane/sizes.hpp"

namespace backplane::testing {

class EndOfPage {
 public:
  // The memory has `bytes` bytes, at most a page, and is zeroed. Throws std::bad_alloc.
  explicit EndOfPage(size_t bytes) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), bytes_(bytes) {
    block_ = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block_ == MAP_FAILED || bytes > page_ || mprotect(static_cast<char*>(block_) + page_, page_, PROT_NONE) != 0)
      throw std::bad_alloc();
  }
  EndOfPage(const EndOfPage&) = delete;
  EndOfPage& operator=(const EndOfPage&) = delete;
  ~EndOfPage() { munmap(block_, 2 * page_); }
  void* get() const { return static_cast<char*>(block_) + page_ - bytes_; }

 private:
  const size_t page_, bytes_;
  void* block_;
};

// A struct with only the memory that a peer built with ABI 1.0 allocates for it. Accessing a field that was added after
// 1.0 crashes.
template <class T>
class Older {
 public:
  explicit Older(T value = {}) : memory_(kSize10<T>) {
    value.size = kSize10<T>;
    std::memcpy(memory_.get(), static_cast<const void*>(&value), kSize10<T>);
  }
  T* get() const { return static_cast<T*>(memory_.get()); }
  T* operator->() const { return get(); }

 private:
  EndOfPage memory_;
};

}  // namespace backplane::testing

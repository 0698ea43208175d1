// SPDX-License-Identifier: Apache-2.0
// Owners of file descriptors and of memory mappings.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace backplane::isolate {

// Owns a file descriptor. A new descriptor has the number of a standard stream if the process has closed that stream.
// The constructor moves it to another number, because otherwise the output of other code would end up in the file.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {
    if (number >= 0 && number <= STDERR_FILENO) leave_standard_streams();
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  void leave_standard_streams();

  int number_;
};

// A mapped part of a file, shared with other processes if it can be written. Its offset need not be a multiple of the
// page size.
class Mapping {
 public:
  Mapping() = default;
  // The result is empty if `bytes` is 0 or the system refuses.
  static Mapping of(int file, uint64_t offset, uint64_t bytes, int protection);
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Mapping() {
    if (base_) ::munmap(base_, mapped_);
  }
  char* data() const { return data_; }
  explicit operator bool() const { return base_ != nullptr; }

 private:
  void* base_ = nullptr;
  uint64_t mapped_ = 0;
  char* data_ = nullptr;
};

}  // namespace backplane::isolate

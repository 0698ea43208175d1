// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "runtime/memory.h"

namespace backplane::cpu {

// Divides scratch memory into aligned parts. If `memory` is null, only counts their bytes.
class Parts {
 public:
  explicit Parts(void* memory) : memory_(static_cast<std::byte*>(memory)) {}
  template <class T>
  T* take(int64_t count) {
    const int64_t at = bytes_;
    bytes_ += align_up(count * static_cast<int64_t>(sizeof(T)));
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + at);
  }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  int64_t bytes_ = 0;
};

}  // namespace backplane::cpu

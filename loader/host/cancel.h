// SPDX-License-Identifier: Apache-2.0
// What bp_cancel_t is: a flag that can only be set, and one that follows it.
#pragma once

#include <atomic>
#include <cstdint>

#include "backplane/host.h"

struct bp_cancel_t {
 public:
  // May be called from a signal handler.
  void set() { set_.store(1, std::memory_order_release); }
  bool is_set() const { return set_.load(std::memory_order_acquire) != 0 || (other_ && other_->is_set()); }
  // Not set, unless `other` (may be null) is or will be. For tokens of the loader's own, while nobody looks.
  void follow(const bp_cancel_t* other) {
    set_.store(0, std::memory_order_relaxed);
    other_ = other;
  }

 private:
  std::atomic<uint32_t> set_{0};
  const bp_cancel_t* other_ = nullptr;
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
};

namespace backplane {

// A missing token is never set.
inline bool cancelled(const bp_cancel_t* token) {
  return token && token->is_set();
}

}  // namespace backplane

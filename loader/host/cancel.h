// SPDX-License-Identifier: Apache-2.0
// What bp_cancel_t is: a flag that can only be set, one that follows it, and a call when it is set.
#pragma once

#include <atomic>
#include <cstdint>

#include "backplane/host.h"

struct bp_cancel_t {
 public:
  // May be called from a signal handler.
  void set() noexcept;
  bool is_set() const { return set_.load() != 0 || (other_ && other_->is_set()); }
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

// Calls what(self) at most once, on a thread of the loader's, when the token is set or was set already. Lives while the
// token does; when it is gone, the call has ended or never comes. The call must not block and must not destroy it.
// Throws std::system_error where no thread can be had.
class CancelLink {
 public:
  CancelLink(const bp_cancel_t& token, void (*what)(void* self), void* self);
  ~CancelLink();
  CancelLink(const CancelLink&) = delete;
  CancelLink& operator=(const CancelLink&) = delete;

 private:
  friend class CancelWatch;
  const bp_cancel_t& token_;
  void (*what_)(void* self);
  void* self_;
};

}  // namespace backplane

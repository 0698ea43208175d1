// SPDX-License-Identifier: Apache-2.0
// Implements bp_cancel_t: a flag that can only be set, optionally set together with another one, with callbacks.
#pragma once

#include <atomic>
#include <cstdint>

#include "backplane/host.h"

struct bp_cancel_t {
 public:
  // May be called from a signal handler.
  void set() noexcept;
  bool is_set() const { return set_.load() != 0 || (other_ && other_->is_set()); }
  // Resets the flag and lets it follow `other` (may be null). For the loader's own tokens, while no thread uses them.
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

// A null token is never set.
inline bool cancelled(const bp_cancel_t* token) {
  return token && token->is_set();
}

// Calls what(self) at most once, on a thread of the loader, when the token is or becomes set. The token must outlive
// it; after its destructor the call has ended or never happens. The call must not block and must not destroy it. Throws
// std::system_error where no thread can be created.
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

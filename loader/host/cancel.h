// SPDX-License-Identifier: Apache-2.0
// Implements bp_cancel_t: a flag that cannot be cleared by its users, may follow another flag, and calls back.
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
// the link; once the link's destructor returns, the call has finished or never happens. The call must not block or
// destroy the link. Throws std::system_error if the thread or its eventfd cannot be created.
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

// SPDX-License-Identifier: Apache-2.0
// Implements bp_cancel_t: a flag that users can set but not clear. A flag may follow another one. A CancelLink calls
// back when its flag is set.
#pragma once

#include <atomic>
#include <cstdint>

#include "backplane/host.h"

struct bp_cancel_t {
 public:
  // May be called from a signal handler.
  void set() noexcept;
  bool is_set() const { return set_.load() != 0 || (other_ && other_->is_set()); }
  // Clears the flag and lets it follow `other` (may be null). Only for the loader's own tokens, while no thread uses
  // them.
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

// Whether the token is set. A null token is never set.
inline bool cancelled(const bp_cancel_t* token) {
  return token && token->is_set();
}

// Calls what(self) once, on a thread of the loader, when the token becomes set or if it already is. The token must
// outlive the link. After the link's destructor returns, the call has ended or will not be made. The call must not
// block, and must not create or destroy a link. Throws std::system_error if the thread or its eventfd cannot be
// created.
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

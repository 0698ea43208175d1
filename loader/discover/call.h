// SPDX-License-Identifier: Apache-2.0
// Calls a plugin's functions, catches its exceptions and restores the thread's signal mask. Used for discovery, for
// opening and closing devices, and for all calls in the process of an isolated backend. Coverage, compiling and runs
// call plugins directly.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>

#include "base/status.h"

namespace backplane {

class KeptSignalMask {
 public:
  KeptSignalMask() { pthread_sigmask(SIG_BLOCK, nullptr, &before_); }
  ~KeptSignalMask() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  KeptSignalMask(const KeptSignalMask&) = delete;

 private:
  sigset_t before_;
};

// The text buffer of an error. Saved before the call, because the plugin can overwrite the pointers in `error`.
class ErrorText {
 public:
  explicit ErrorText(bp_error_t* error) : error_(error), text_(error->text), capacity_(error->text_capacity) {}
  void set(std::string_view what) {
    constexpr std::string_view kText = "it threw an exception: ";
    uint64_t size = 0;
    for (const std::string_view part : {kText, what}) {
      const uint64_t bytes = std::min<uint64_t>(part.size(), capacity_ - size);
      std::memcpy(text_ + size, part.data(), bytes);
      size += bytes;
    }
    error_->text_size = size;
  }

 private:
  bp_error_t* error_;
  char* text_;
  uint64_t capacity_;
};

// Returns the result of `call`. If `call` throws, returns BP_INTERNAL and writes the exception's text into `error`.
template <class F>
bp_status_t call_plugin(PluginError& error, F&& call) noexcept {
  const KeptSignalMask mask;
  ErrorText text(error.get());
  try {
    return call();
  } catch (const std::exception& thrown) {
    text.set(thrown.what());
  } catch (...) {
    text.set("its type is unknown");
  }
  return BP_INTERNAL;
}

// For plugin functions that return nothing. Exceptions are ignored.
template <class F>
void call_plugin(F&& call) noexcept {
  const KeptSignalMask mask;
  try {
    call();
  } catch (...) {
  }
}

}  // namespace backplane

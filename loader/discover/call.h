// SPDX-License-Identifier: Apache-2.0
// Calls a plugin's functions, catches its exceptions and restores the thread's signal mask and floating-point
// environment. Used for discovery, for opening, closing and abandoning devices, and for all calls in the process of an
// isolated backend. Coverage, compiling and runs call plugins directly.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <exception>
#include <string_view>

#include "base/status.h"

namespace backplane {

// Restores the thread's signal mask and floating-point environment, which a plugin's code may change. Libraries that
// are linked with -ffast-math, for example, make the thread replace denormal numbers by zeros from the moment at which
// they are loaded.
class KeptThreadState {
 public:
  KeptThreadState() {
    pthread_sigmask(SIG_BLOCK, nullptr, &signals_);
    std::fegetenv(&floats_);
  }
  ~KeptThreadState() {
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
    std::fesetenv(&floats_);
  }
  KeptThreadState(const KeptThreadState&) = delete;

 private:
  sigset_t signals_;
  std::fenv_t floats_;
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
  const KeptThreadState kept;
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
  const KeptThreadState kept;
  try {
    call();
  } catch (...) {
  }
}

}  // namespace backplane

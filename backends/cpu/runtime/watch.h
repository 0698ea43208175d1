// SPDX-License-Identifier: Apache-2.0
// Stops work early: compilations and runs that are cancelled, runs past their deadline, folding that takes too long.
// Checked every few milliseconds: by `parallel`, and in other long loops by a Pace.
#pragma once

#include <cstdint>

#include "runtime/thread_state.h"

namespace backplane::cpu {

class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;
  // Throws if the work must stop. [any thread]
  virtual void check() const = 0;
};

// Counts the work of a loop between two checks. Cheap enough to be called for each row of a tensor, not for each
// element.
class Pace {
 public:
  Pace() : watch_(thread_state().watch) {}
  // `work`: approximate multiply-adds since the last call. Throws if the thread's watch does.
  void spend(int64_t work) {
    left_ -= work;
    if (left_ < 0) pause();
  }

 private:
  static constexpr int64_t kBetween = int64_t{1} << 20;

  void pause() {
    left_ = kBetween;
    if (watch_ != nullptr) watch_->check();
  }

  const Watch* watch_;
  int64_t left_ = kBetween;
};

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// Stops work early: a compilation or run that is cancelled, a run past its deadline, folding that takes too long.
// `parallel` (runtime/parallel.h) checks the watch about every millisecond; other long loops check it through a Pace.
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

// Checks the watch after a certain amount of work. Cheap enough for every row of a tensor, but not for every element.
class Pace {
 public:
  Pace() : watch_(thread_state().watch) {}
  // `work`: the approximate number of multiply-adds since the last call. Throws if the thread's watch throws.
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

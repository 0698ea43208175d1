// SPDX-License-Identifier: Apache-2.0
// How long work is ended before it is done: a run that is cancelled or past its deadline, a constant that takes too
// long to fold. Work asks every few milliseconds: `parallel` by itself, long loops elsewhere through a Pace.
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
  // Throws where the work has to end. [any thread]
  virtual void check() const = 0;
};

// A loop's count of the work that it does between two checks. Cheap enough for each row of a tensor, not for each
// element.
class Pace {
 public:
  Pace() : watch_(thread_state().watch) {}
  // `work`: about so many multiply-adds. Throws where the thread's watch does.
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

// SPDX-License-Identifier: Apache-2.0
// Makes a failing graph smaller as long as it fails.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string_view>

#include "minimise/candidate.h"

namespace backplane::conform {

struct Limits {
  uint32_t attempts = 2000;  // calls of `fails`
  std::chrono::seconds time{60};
};

struct Minimised {
  Network network;
  uint32_t attempts = 0;
  bool finished = false;  // no step makes the graph smaller; otherwise a limit was reached
};

// The tests of a candidate, in this order.
struct Questions {
  std::function<bool(const Network&)> is_sound;  // whether it is a valid graph; called before its values are recomputed
  std::function<bool(const Network&)> fails;     // whether it fails as `start` does
};

Minimised minimise(Network start, const Questions& ask, const Limits& limits = {});

}  // namespace backplane::conform

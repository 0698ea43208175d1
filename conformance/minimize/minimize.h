// SPDX-License-Identifier: Apache-2.0
// Reduces a failing graph as long as it still fails.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string_view>

#include "minimize/candidate.h"

namespace backplane::conform {

struct Limits {
  uint32_t attempts = 2000;  // largest number of calls of `fails`
  std::chrono::seconds time{60};
};

struct Minimized {
  Network network;
  uint32_t attempts = 0;
  bool finished = false;  // true if no step reduces the graph further, false if a limit was reached
};

// The tests that a candidate must pass, in this order.
struct Questions {
  std::function<bool(const Network&)> is_sound;  // true if the graph is valid; called before its values are recomputed
  std::function<bool(const Network&)> fails;     // true if the graph fails in the same way as `start`
};

Minimized minimize(Network start, const Questions& ask, const Limits& limits = {});

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
#include "minimize/minimize.h"

#include "minimize/steps.h"

namespace backplane::conform {

Minimized minimize(Network start, const Questions& ask, const Limits& limits) {
  const auto end = std::chrono::steady_clock::now() + limits.time;
  Minimized best{std::move(start)};
  bool met = false;  // true once a limit is reached
  const Attempt attempt = [&](Network smaller) {
    met = met || best.attempts >= limits.attempts || std::chrono::steady_clock::now() >= end;
    if (met || !ask.is_sound(smaller) || !recompute(smaller) || !(size_of(smaller) < size_of(best.network)))
      return false;
    ++best.attempts;
    if (!ask.fails(smaller)) return false;
    best.network = std::move(smaller);
    return true;
  };
  // After a success, starts again with the first steps, because they remove the most.
  const std::span<const Step> all = steps();
  for (size_t i = 0; i < all.size() && !met;) {
    const Network now = best.network;
    const bool worked = all[i].offer(now, attempt);
    i = worked ? 0 : i + 1;
  }
  best.finished = !met;
  return best;
}

}  // namespace backplane::conform

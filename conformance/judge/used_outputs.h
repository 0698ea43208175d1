// SPDX-License-Identifier: Apache-2.0
// The results of an operator whose last outputs are optional.
#pragma once

#include <algorithm>

#include "judge/oracle.h"

namespace backplane::conform {

// Drops the results of outputs that the call does not have.
inline References used_outputs(const Call& call, References all) {
  const size_t count = std::clamp<size_t>(call.output_count(), 1, all.size());
  all.erase(all.begin() + static_cast<int64_t>(count), all.end());
  return all;
}

}  // namespace backplane::conform

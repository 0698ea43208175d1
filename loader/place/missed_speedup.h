// SPDX-License-Identifier: Apache-2.0
// Nodes that do not run on the device that computes them fastest, because running elsewhere makes the total cheaper.
#pragma once

#include "place/search.h"

namespace backplane {

// Connected nodes of one island that the device `instead_of` would compute faster, and the seconds by which the total
// would grow if they ran there. The total would grow because of copies and of launches: of a new island, or of an
// island that is cut in two.
struct MissedSpeedup {
  uint32_t island;
  uint32_t instead_of;  // the device that would compute the nodes faster
  std::vector<uint32_t> nodes;
  double seconds;
};

// All missed speedups with positive `seconds`, except those of nodes in atomic groups. Near-linear time.
std::vector<MissedSpeedup> find_missed_speedups(const Problem& problem, const Solution& found);

}  // namespace backplane

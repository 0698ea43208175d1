// SPDX-License-Identifier: Apache-2.0
// What it saves that nodes are not where they would compute the fastest.
#pragma once

#include "place/search.h"

namespace backplane {

// Neighbouring nodes of one island that `instead_of` would compute faster, and what all costs together would grow by if
// they ran there: copies, and the launches of a new island and of an island cut in two.
struct Saving {
  uint32_t island;
  uint32_t instead_of;  // device
  std::vector<uint32_t> nodes;
  double seconds;
};

// Only savings of more than 0. Near-linear.
std::vector<Saving> savings_of(const Problem& problem, const Solution& found);

}  // namespace backplane

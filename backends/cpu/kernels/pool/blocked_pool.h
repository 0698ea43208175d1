// SPDX-License-Identifier: Apache-2.0
// Pools over blocked tensors: all channels of a block are computed at once.
#pragma once

#include <vector>

#include "kernels/common/window.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

// The input positions that an output position reads along one dimension: first, first + step, …
struct Reach {
  int64_t first, count;
  int64_t padded_count;  // including positions in the padding
};

// Returns the reach of each output position along dimension `d`.
std::vector<Reach> reaches(const Window& window, size_t d);

struct BlockedPool {
  bool maximum;         // else the mean
  bool counts_padding;  // in the mean
};

Plan plan_blocked_pool(const BlockedPool& pool, const Window& window, const Shape& input, const Shape& output);

}  // namespace backplane::cpu

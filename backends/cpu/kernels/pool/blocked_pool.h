// SPDX-License-Identifier: Apache-2.0
// Pools over blocked tensors: all channels of a block are computed at once.
#pragma once

#include <vector>

#include "kernels/common/window.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

// The input positions that an output position reads along one dimension: `count` positions, beginning with `first`, one
// dilation apart.
struct Reach {
  int64_t first, count;
  int64_t padded_count;  // like `count`, but includes positions in the padding
};

// Returns the reach of each output position along dimension `d`.
std::vector<Reach> reaches(const Window& window, size_t d);

struct BlockedPool {
  bool maximum;         // false: mean
  bool counts_padding;  // whether the mean includes padding
};

Plan plan_blocked_pool(const BlockedPool& pool, const Window& window, const Shape& input, const Shape& output);

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// Pools over blocked tensors: the channels of a block are done at once.
#pragma once

#include <vector>

#include "kernels/common/window.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

// Along one dimension, what an output place reads: input places first, first + step, …
struct Reach {
  int64_t first, count;
  int64_t padded_count;  // with places in the padding
};

// Of all output places of dimension `d`.
std::vector<Reach> reaches(const Window& window, size_t d);

struct BlockedPool {
  bool maximum;         // else the mean
  bool counts_padding;  // in the mean
};

Plan plan_blocked_pool(const BlockedPool& pool, const Window& window, const Shape& input, const Shape& output);

}  // namespace backplane::cpu

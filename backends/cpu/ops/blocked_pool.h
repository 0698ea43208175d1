// SPDX-License-Identifier: Apache-2.0
// Pools over blocked tensors: the channels of a block are done at once.
#pragma once

#include "engine/kernel.h"
#include "ops/window.h"

namespace backplane::cpu {

struct BlockedPool {
  bool maximum;         // else the mean
  bool counts_padding;  // in the mean
};

Plan plan_blocked_pool(const BlockedPool& pool, const Window& window, const Shape& input, const Shape& output);

}  // namespace backplane::cpu

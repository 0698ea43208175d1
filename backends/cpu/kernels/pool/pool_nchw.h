// SPDX-License-Identifier: Apache-2.0
// Pools over dense tensors of floats. The input rows of a window are first combined into one row, then neighbors along
// that row.
#pragma once

#include "kernels/pool/blocked_pool.h"

namespace backplane::cpu {

// Whether plan_pool_nchw supports the window: rows with their padding are short enough to be copied, or the pool is
// global and copies none.
bool has_short_rows(const Window& window);

Plan plan_pool_nchw(const BlockedPool& pool, const Window& window, const Shape& input, const Shape& output);

}  // namespace backplane::cpu

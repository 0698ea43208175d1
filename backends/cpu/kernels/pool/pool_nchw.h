// SPDX-License-Identifier: Apache-2.0
// Pools over dense tensors of floats: input rows are first combined into one row, then neighbours along that row.
#pragma once

#include "kernels/pool/blocked_pool.h"

namespace backplane::cpu {

// Whether a row with its padding is short enough to be copied, or the pool is global and copies no rows.
bool has_short_rows(const Window& window);

Plan plan_pool_nchw(const BlockedPool& pool, const Window& window, const Shape& input, const Shape& output);

}  // namespace backplane::cpu

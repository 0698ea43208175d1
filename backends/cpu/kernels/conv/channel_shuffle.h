// SPDX-License-Identifier: Apache-2.0
// ShuffleNet's channel shuffle (Reshape, Transpose, Reshape): takes a channel of each group in turn.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

// The source channel that becomes channel c.
inline int64_t shuffle_source(int64_t c, int64_t channels, int64_t groups) {
  return c % groups * (channels / groups) + c / groups;
}

// Channel i · groups + g of the result is channel g · (channels / groups) + i of the float input. All inputs after the
// first are ignored.
std::unique_ptr<Kernel> make_channel_shuffle(int64_t groups);

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// ShuffleNet's channel shuffle (Reshape, Transpose, Reshape), which takes one channel of each group in turn.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

// Returns the channel of the input that becomes channel c of the result.
inline int64_t shuffle_source(int64_t c, int64_t channels, int64_t groups) {
  return c % groups * (channels / groups) + c / groups;
}

// Channel i · groups + g of the result is channel g · (channels / groups) + i of the float input. All inputs after the
// first are ignored.
std::unique_ptr<Kernel> make_channel_shuffle(int64_t groups);

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// Conv's kernel, for operators that extend it and for passes.
#pragma once

#include "runtime/choices.h"
#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

std::unique_ptr<Kernel> create_conv(const Node& node);

// Lets the Conv absorb a channel shuffle of `groups` groups of its input (kernels/conv/channel_shuffle.h), so that it
// reads the input as it was before the shuffle. With `through`, which requires a depthwise convolution, the channels of
// the result are in the order before the shuffle too; otherwise the result does not change. Call this while compiling,
// and with `through` only after the last `append`. Returns false if the kernel is not that of a Conv.
bool skip_shuffle(Kernel& kernel, int64_t groups, bool through);

ImplementationNames conv_implementations();

}  // namespace backplane::cpu

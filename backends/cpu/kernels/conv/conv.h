// SPDX-License-Identifier: Apache-2.0
// Conv's kernel, for operators that extend it and for passes.
#pragma once

#include "runtime/choices.h"
#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

std::unique_ptr<Kernel> create_conv(const Node& node);

// Called while compiling, after `append`: the Conv absorbs a channel shuffle of `groups` groups of its input
// (kernels/conv/channel_shuffle.h), so that input 0 has the order before the shuffle. With `through` the result has
// that order too, otherwise the usual one. Returns false if the kernel is not a Conv's.
bool skip_shuffle(Kernel& kernel, int64_t groups, bool through);

ImplementationNames conv_implementations();

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// The kernel of Conv, for operators that extend it and for passes.
#pragma once

#include "runtime/choices.h"
#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

std::unique_ptr<Kernel> create_conv(const Node& node);

// Called while compiling, after `append`: the Conv absorbs a channel shuffle of so many groups
// (kernels/conv/channel_shuffle.h), so its input 0 has the order before the shuffle. The result has that order too with
// `through`, otherwise the usual one. False: the kernel is not a Conv's.
bool skip_shuffle(Kernel& kernel, int64_t groups, bool through);

ImplementationNames conv_implementations();

}  // namespace backplane::cpu

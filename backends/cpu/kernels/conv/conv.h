// SPDX-License-Identifier: Apache-2.0
// The kernel of Conv, for operators that do more to its result, and for passes.
#pragma once

#include "runtime/choices.h"
#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

std::unique_ptr<Kernel> create_conv(const Node& node);

// While compiling, after `append`: from now on the channels of the Conv's input 0 come in the order that they had
// before a shuffle of so many groups (kernels/conv/channel_shuffle.h). Those of the result stay in that order
// (`through`), or are in the usual one. False: the kernel is not a Conv's.
bool skip_shuffle(Kernel& kernel, int64_t groups, bool through);

ImplementationNames conv_implementations();

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// Conv's kernel, for operators that extend it and for passes.
#pragma once

#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

std::unique_ptr<Kernel> create_conv(const Node& node);

// Prepares a Conv for the removal of a channel shuffle of `groups` groups (kernels/conv/channel_shuffle.h) before it:
// the Conv then reads the input of the shuffle instead of its result. Without `through`, the Conv's result does not
// change. With `through`, which requires a depthwise convolution, the Conv skips the shuffle: its result has the
// channel order of the shuffle's input, and the reader of the result must do the shuffle. `groups` 1 undoes the call.
// Call this while compiling, and with `through` only after the last Kernel::append. Returns false, without effect, if
// the kernel is not that of a Conv.
bool skip_shuffle(Kernel& kernel, int64_t groups, bool through);

}  // namespace backplane::cpu

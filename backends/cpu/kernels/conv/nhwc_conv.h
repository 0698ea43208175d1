// SPDX-License-Identifier: Apache-2.0
// NhwcConv's kernel, for passes that remove the transposes around it.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

// Which operands of an NhwcConv have their channels first, like a Conv's, because a pass removed the transposes.
struct ChannelsFirst {
  bool input = false, output = false;
};

// Sets the order of the operands. Call this while compiling, before Kernel::append. Returns false if the kernel is not
// that of an NhwcConv.
bool set_channels_first(Kernel& kernel, ChannelsFirst order);

}  // namespace backplane::cpu

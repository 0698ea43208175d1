// SPDX-License-Identifier: Apache-2.0
// A window of a convolution or pool, as macros for kernels.
#pragma once

#include "backplane/sdk/window.hpp"
#include "ops/row.h"

namespace backplane::gpu {

using sdk::Spatial;
using sdk::supports_window;

struct Window : sdk::Window {
  // The layout of kernels/polyphase.cl: the number of phases that the window uses, and the number of positions in each.
  Spatial phases() const;
  Spatial positions() const;
  // Whether the input itself already has the layout of kernels/polyphase.cl.
  bool in_place() const;
  // " -DKERNEL_D=… -DPAD_W=…": the window as macros. PAD_* is the padding before each axis.
  std::string macros() const;
  std::string polyphase_macros() const;  // " -DSTRIDE_D=… -DPHASES_W=…"
  std::string tap_macros() const;        // " -DKERNEL_D=… -DDILATION_W=…"
};

}  // namespace backplane::gpu

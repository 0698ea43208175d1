// SPDX-License-Identifier: Apache-2.0
// A window of a convolution or pool, as macros for kernels.
#pragma once

#include "backplane/sdk/window.hpp"
#include "ops/row.h"

namespace backplane::gpu {

using sdk::Spatial;
using sdk::supports_window;

struct Window : sdk::Window {
  // The layout of kernels/polyphase.cl: the number of phases that the window's taps use, and the positions per phase.
  Spatial phases() const;
  Spatial places() const;
  // Whether the input already has this layout.
  bool in_place() const;
  // " -DKERNEL_D=… -DPAD_W=…": all members as macros, of the padding only that before each axis.
  std::string macros() const;
  std::string polyphase_macros() const;  // " -DSTRIDE_D=… -DPHASES_W=…"
  std::string tap_macros() const;        // " -DKERNEL_D=… -DDILATION_W=…"
};

}  // namespace backplane::gpu

// SPDX-License-Identifier: Apache-2.0
// Winograd convolutions of 3 × 3 windows (kernels/winograd.cl).
#pragma once

#include "ops/window.h"

namespace backplane::gpu {

// Whether Winograd's method is possible and, unless an option decides, faster than a product of the windows.
bool suits_winograd(Emit& e, const Window& w, const Tensor& x, const Tensor& k);
// As emit_windows in ops/conv.cpp, for one group.
void emit_winograd(Emit& e, const Window& w, const Tensor& x, const Tensor& k, const Tensor& bias, const Tensor& y);

}  // namespace backplane::gpu

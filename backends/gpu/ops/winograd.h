// SPDX-License-Identifier: Apache-2.0
// Winograd convolutions of 3 × 3 windows (kernels/winograd.cl).
#pragma once

#include "ops/window.h"

namespace backplane::gpu {

// Why Winograd's method is not used: it is not possible or, unless the option `winograd` decides, not expected to be
// faster than a product. Empty if it is used.
std::string refuse_winograd(Emit& e, const Window& w, const Tensor& x, const Tensor& k);
// Convolves x with weights k of a single group into y; `bias` may be empty.
void emit_winograd(Emit& e, const Window& w, const Tensor& x, const Tensor& k, const Tensor& bias, const Tensor& y);

}  // namespace backplane::gpu

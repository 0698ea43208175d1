// SPDX-License-Identifier: Apache-2.0
// Softmax along an axis, for operators that contain one.
#pragma once

#include "ops/row.h"

namespace backplane::gpu {

// `kind` is KIND of kernels/softmax.cl: "0" for softmax, "1" for the logarithm of softmax.
void emit_softmax(Emit& e, const Tensor& x, const Tensor& y, size_t axis, std::string_view kind);

}  // namespace backplane::gpu

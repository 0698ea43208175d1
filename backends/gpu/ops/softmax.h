// SPDX-License-Identifier: Apache-2.0
// Softmax along an axis, for operators that contain one.
#pragma once

#include "ops/row.h"

namespace backplane::gpu {

// `kind` as in kernels/softmax.cl: "0" softmax, "1" its logarithm.
void emit_softmax(Emit& e, const Tensor& x, const Tensor& y, size_t axis, std::string_view kind);

}  // namespace backplane::gpu

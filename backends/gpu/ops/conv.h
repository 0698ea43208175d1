// SPDX-License-Identifier: Apache-2.0
// Convolutions, for operators that use them.
#pragma once

#include "ops/row.h"

namespace backplane::gpu {

// Convolves int32 values with the node's attributes, into scratch memory of this node; `bias` may be empty.
Tensor emit_integer_conv(Emit& e, const Tensor& x, const Tensor& k, const Tensor& bias);

}  // namespace backplane::gpu

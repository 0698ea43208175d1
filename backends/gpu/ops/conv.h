// SPDX-License-Identifier: Apache-2.0
// Convolutions, for the operators that are made of them.
#pragma once

#include "ops/row.h"

namespace backplane::gpu {

// Of int32 numbers with the node's attributes, into memory of this node; `bias` may be empty.
Tensor emit_integer_conv(Emit& e, const Tensor& x, const Tensor& k, const Tensor& bias);

}  // namespace backplane::gpu

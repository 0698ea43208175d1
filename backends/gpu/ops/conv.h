// SPDX-License-Identifier: Apache-2.0
// Convolutions, for operators that use them.
#pragma once

#include "ops/row.h"

namespace backplane::gpu {

// Convolves x [N, C, …] with weights k [maps, C / group, …], all int32, by the node's attributes. Returns the result in
// scratch memory of this node. `bias` [maps] may be empty.
Tensor emit_integer_conv(Emit& e, const Tensor& x, const Tensor& k, const Tensor& bias);

}  // namespace backplane::gpu

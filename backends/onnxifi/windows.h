// SPDX-License-Identifier: Apache-2.0
// Steps of downgrade.cpp for windows of pools and transposed convolutions, whose older forms place them differently.
#pragma once

#include <string>

#include "rewrite.h"

namespace onnxifi_backend {

// Writes out the padding that the newer form derives from `auto_pad` or `output_shape`: the older form swaps the begin
// and the end of odd padding.
std::string conv_transpose_11(Rewrite&);
// Refuses a pool whose older form has one more window, which begins in the padding after the tensor.
std::string pool_22(Rewrite&);

}  // namespace onnxifi_backend

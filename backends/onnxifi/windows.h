// SPDX-License-Identifier: Apache-2.0
// Steps of downgrade.cpp for windows of pools and transposed convolutions, whose older forms place them differently.
#pragma once

#include <string>

#include "rewrite.h"

namespace onnxifi_backend {

// Writes out the padding that the newer form derives from `auto_pad` or `output_shape`: the older form swaps the begin
// and the end of odd padding.
std::string conv_transpose_11(Rewrite&);
// Writes a pool so that its older forms, which count a last window that begins in the padding after the tensor, have
// the same windows: with `ceil_mode` only where it adds windows, and none of them begins there. Refuses the pool if
// that is impossible. `auto_pad` VALID becomes padding of zero, because its older descriptions disagree on `ceil_mode`.
std::string pool_22(Rewrite&);

// Removes the attribute `pads` if `auto_pad` determines the padding. ONNX does not allow both, so libraries may use
// either; the loader ignores `pads`.
void drop_overridden_pads(OnnxNode&);

}  // namespace onnxifi_backend

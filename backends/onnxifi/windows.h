// SPDX-License-Identifier: Apache-2.0
// Steps of downgrade.cpp for windows of pools and transposed convolutions, whose older forms place windows differently.
#pragma once

#include <string>

#include "rewrite.h"

namespace onnxifi_backend {

// Writes out the padding that the newer form derives from `auto_pad` or `output_shape`: the older form swaps the begin
// and the end of odd padding.
std::string conv_transpose_11(Rewrite&);
// Older forms of pools with `ceil_mode` also count a last window that begins in the padding after the tensor; the newer
// form omits it. Sets `ceil_mode` to 0 where it adds no window, and refuses the pool if the older form would have other
// windows. Replaces `auto_pad` VALID by padding of zero, because older descriptions of VALID disagree on `ceil_mode`.
std::string pool_22(Rewrite&);

// Removes the attribute `pads` if `auto_pad` determines the padding. ONNX does not allow both, so libraries may use
// either; the loader ignores `pads`.
void drop_overridden_pads(OnnxNode&);

}  // namespace onnxifi_backend

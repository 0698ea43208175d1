// SPDX-License-Identifier: Apache-2.0
// The input of a window, padded and split into phases by its stride (kernels/polyphase.cl).
#pragma once

#include "ops/window.h"

namespace backplane::gpu {

// [N·C, phases, positions…] of x [N, C, …]; x itself if it already has this layout.
Tensor to_polyphase(Emit& e, const Window& w, const Tensor& x);

}  // namespace backplane::gpu

// SPDX-License-Identifier: Apache-2.0
// The input of a window, padded and dealt out by its stride (kernels/polyphase.cl).
#pragma once

#include "ops/window.h"

namespace backplane::gpu {

// [N·C, phases, places…] of x [N, C, …]; x itself where that is how it lies.
Tensor to_polyphase(Emit& e, const Window& w, const Tensor& x);

}  // namespace backplane::gpu

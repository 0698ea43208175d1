// SPDX-License-Identifier: Apache-2.0
// The input of a window, padded and split into phases by its stride (kernels/polyphase.cl).
#pragma once

#include "ops/window.h"

namespace backplane::gpu {

// Returns [N·C, phases, positions…] from x [N, C, …], or x itself if x already has that layout.
Tensor to_polyphase(Emit& e, const Window& w, const Tensor& x);

}  // namespace backplane::gpu

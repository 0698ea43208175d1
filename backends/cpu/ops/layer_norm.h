// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/kernel.h"

namespace backplane::cpu {

// LayerNormalization from `axis` on. Inputs: x, scale, bias.
std::unique_ptr<Kernel> make_layer_norm(int64_t axis, float epsilon);

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/kernel.h"

namespace backplane::cpu {

// LayerNormalization over the dimensions from `axis` on. Inputs: x, scale, bias.
std::unique_ptr<Kernel> make_layer_norm(int64_t axis, float epsilon);

// Computes y = x / sqrt(mean of squares + epsilon) · gain for n > 0 elements; y may be x. Returns 1 / sqrt(mean of
// squares + epsilon).
float rms_row(const float* x, const float* gain, float epsilon, float* y, int64_t n);

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// ConvInteger with known weights on tiles of codes, alone or with what dynamic quantization puts behind it.
#pragma once

#include <memory>

#include "runtime/kernel.h"

namespace backplane::cpu {

// ConvInteger: its inputs. Weights that are not known go to `definition`.
std::unique_ptr<Kernel> make_integer_conv_sums(const Node& conv, std::unique_ptr<Kernel> definition);

// ConvInteger with known weights, Cast to float, Mul by one scale: four inputs of the first (absent ones are absent),
// then the scale. It takes post-operations that add no tensor.
std::unique_ptr<Kernel> make_scaled_conv(const Node& conv);

}  // namespace backplane::cpu

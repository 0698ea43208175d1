// SPDX-License-Identifier: Apache-2.0
#include "ops/integer_tiles.h"

#include <algorithm>
#include <cmath>

namespace backplane::cpu {

int32_t IntegerWork::bound(bool lower) const {
  if (!activation || (activation->function == Activation::kRelu && !lower)) return lower ? result.low() : result.high();
  const float value = activation->function == Activation::kRelu ? 0.0f : lower ? activation->alpha : activation->beta;
  const auto least = static_cast<float>(result.low() - result.zero);
  const auto most = static_cast<float>(result.high() - result.zero);
  return static_cast<int32_t>(nearest(std::clamp(value, least, most))) + result.zero;
}

int32_t IntegerWork::whole_bias(int64_t channel) const {
  return static_cast<int32_t>(std::nearbyint(bias[static_cast<size_t>(channel)]));
}

float IntegerWork::rest_of_bias(int64_t channel) const {
  const auto c = static_cast<size_t>(channel);
  return (bias[c] - std::nearbyint(bias[c])) * scale[c];
}

bool IntegerWork::stays_small() const {
  constexpr float kMost = 1 << 30;
  const auto products = static_cast<float>(size.in_channels / size.groups * window.kernel_size());
  const float most_sum = products * 255 * 128 * 2;  // zero points included
  for (size_t c = 0; c < scale.size(); ++c) {
    const float sum = most_sum + std::abs(bias[c]);
    if (!(sum < kMost && sum * std::abs(scale[c]) < kMost)) return false;
  }
  return true;
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_tiles.h"

#include <algorithm>
#include <cmath>

namespace backplane::cpu {

int32_t Q8Work::bound(bool lower) const {
  if (!activation || (activation->function == Activation::kRelu && !lower)) return lower ? result.low() : result.high();
  const float value = activation->function == Activation::kRelu ? 0.0f : lower ? activation->alpha : activation->beta;
  const auto least = static_cast<float>(result.low() - result.zero);
  const auto most = static_cast<float>(result.high() - result.zero);
  return static_cast<int32_t>(nearest(std::clamp(value, least, most))) + result.zero;
}

bool Q8Work::stays_small() const {
  constexpr float kMost = 1 << 30;
  const auto products = static_cast<float>(size.in_channels / size.groups * window.kernel_size());
  const float max_sum = products * 255 * 128 * 2;  // half of it for the products with the zero point
  for (size_t c = 0; c < scale.size(); ++c) {
    const float sum = max_sum + std::abs(bias[c]);
    if (!(sum < kMost && sum * std::abs(scale[c]) < kMost)) return false;
  }
  return true;
}

bool Q8Work::reads_padding() const {
  if (window.begin != Spatial{0, 0, 0}) return true;
  for (size_t d = 0; d < kSpatial; ++d) {
    if ((window.out[d] - 1) * window.stride[d] >= window.in[d]) return true;
  }
  return false;
}

Q8Pack::Q8Pack(std::byte* chunk, int64_t width)
    : starts(reinterpret_cast<int32_t*>(chunk)),
      scale(reinterpret_cast<float*>(starts + width)),
      added(scale + width),
      weights(reinterpret_cast<int8_t*>(added + width)) {}

void Q8Pack::set(int64_t lane, const Q8Work& work, int64_t channel, int32_t weight_sum) const {
  const auto c = static_cast<size_t>(channel);
  // Signed values are handled as unsigned, with 128 added.
  const int32_t source_zero = work.source.zero + (work.source.is_signed() ? 128 : 0);
  const float whole = std::nearbyint(work.bias[c]);
  starts[lane] = static_cast<int32_t>(whole) - source_zero * weight_sum;
  scale[lane] = work.scale[c];
  added[lane] = (work.bias[c] - whole) * work.scale[c];
}

}  // namespace backplane::cpu

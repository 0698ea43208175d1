// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/channel_shuffle.h"

#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"

namespace backplane::cpu {

namespace {

// y[p][l] = x[sources[l] + p·kLanes]: gathers the channels of one block at each position.
template <int kLanes>
[[gnu::always_inline]] inline void shuffle_channels(const float* x, const int32_t* sources, float* y,
                                                    int64_t positions) {
  for (int64_t p = 0; p < positions; ++p) {
    for (int l = 0; l < kLanes; ++l) y[p * kLanes + l] = x[sources[l] + p * kLanes];
  }
}
CLONED void shuffle_channels_8(const float* x, const int32_t* sources, float* y, int64_t positions) {
  shuffle_channels<8>(x, sources, y, positions);
}
CLONED void shuffle_channels_16(const float* x, const int32_t* sources, float* y, int64_t positions) {
  shuffle_channels<16>(x, sources, y, positions);
}

Plan plan_dense(const Shape& shape, int64_t groups) {
  const int64_t channels = shape[1], positions = shape.elements(2, shape.rank());
  return make_plan({shape}, [=, batch = shape[0]](Tensors in, Tensors out) {
    parallel(batch * channels, 1 + kCheapGrain / (1 + positions), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = i % channels, from = shuffle_source(c, channels, groups);
        std::memcpy(out[0].as<float>() + i * positions, in[0].as<float>() + (i - c + from) * positions,
                    static_cast<size_t>(positions) * sizeof(float));
      }
    });
  });
}

Plan plan_blocked(const Shape& shape, int64_t groups) {
  const int64_t lanes = channel_block(), channels = shape[1], positions = shape.elements(2, shape.rank());
  const int64_t blocks = (channels + lanes - 1) / lanes;
  std::vector<int32_t> sources;  // for each channel of the result, its source's offset in an input image, in floats
  for (int64_t c = 0; c < blocks * lanes; ++c) {
    const int64_t from = c < channels ? shuffle_source(c, channels, groups) : c;
    sources.push_back(static_cast<int32_t>(from / lanes * positions * lanes + from % lanes));
  }
  Plan plan = make_plan({shape}, [=, batch = shape[0]](Tensors in, Tensors out) {
    parallel(batch * blocks, 1 + kCheapGrain / (lanes * positions), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* image = in[0].as<float>() + i / blocks * blocks * positions * lanes;
        const int32_t* from = &sources[static_cast<size_t>(i % blocks * lanes)];
        (lanes == 16
             ? clone_of<shuffle_channels_16>
             : clone_of<shuffle_channels_8>)(image, from, out[0].as<float>() + i * positions * lanes, positions);
      }
    });
  });
  return plan;
}

}  // namespace

std::unique_ptr<Kernel> make_channel_shuffle(int64_t groups) {
  return make_kernel([groups](Tensors inputs) -> Plan {
    const Shape& shape = inputs[0].shape;
    if (shape.rank() < 2 || shape[1] % groups != 0)
      return fail("the channels of " + to_string(shape) + " cannot be divided into " + std::to_string(groups) +
                  " groups");
    const bool blocked = inputs[0].format == Format::kBlocked && inputs[0].stored() / shape[0] <= INT32_MAX;
    Plan plan = blocked ? plan_blocked(shape, groups) : plan_dense(shape, groups);
    if (blocked) keep_format(plan, inputs);
    return plan;
  });
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise_conv.h"

#include <algorithm>
#include <cstring>

#include "engine/memory.h"
#include "engine/threads.h"
#include "ops/activation.h"
#include "ops/clones.h"
#include "ops/function_kernel.h"
#include "ops/support.h"

namespace backplane::cpu {

namespace {

// A block of output channels reads the input channels [first, last) of all groups that it has channels of. Its weights
// are a vector of the block's channels for each of these, zero where input and output are of different groups.
struct OutBlock {
  int64_t first, last;
  int64_t weights_at;  // in floats
};

// Places of one block of output channels: `x` and `y` point at the first of them, in block 0 and in the output's block.
struct Strip {
  const float* x;
  int64_t block_stride;  // floats between blocks of input channels
  int64_t first, last;   // input channels
  const float* weights;
  const float* bias;
  float* y;
};

template <int kLanes>
struct LanesOf {
  typedef float type __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float)), may_alias));
};

// So many sums fill the registers: each weight vector is loaded once for all of them.
template <int kLanes, int kPlaces>
[[gnu::always_inline]] inline void convolve_places(const Strip& s, const float* x, float* y) {
  using Lanes = typename LanesOf<kLanes>::type;
  Lanes sums[kPlaces];
#pragma GCC unroll 16
  for (int p = 0; p < kPlaces; ++p) sums[p] = *reinterpret_cast<const Lanes*>(s.bias);
  const float* w = s.weights;
  for (int64_t c = s.first; c < s.last;) {
    const float* from = x + c / kLanes * s.block_stride;
    const int64_t end = s.last < (c / kLanes + 1) * kLanes ? s.last : (c / kLanes + 1) * kLanes;
    for (int64_t l = c % kLanes; c < end; ++c, ++l, w += kLanes) {
      const Lanes weight = *reinterpret_cast<const Lanes*>(w);
#pragma GCC unroll 16
      for (int p = 0; p < kPlaces; ++p) sums[p] += weight * from[p * kLanes + l];
    }
  }
#pragma GCC unroll 16
  for (int p = 0; p < kPlaces; ++p) *reinterpret_cast<Lanes*>(y + p * kLanes) = sums[p];
}

template <int kLanes>
[[gnu::always_inline]] inline void convolve_strip(const Strip& s, int64_t places) {
  int64_t p = 0;
  for (; p + 14 <= places; p += 14) convolve_places<kLanes, 14>(s, s.x + p * kLanes, s.y + p * kLanes);
  for (; p + 7 <= places; p += 7) convolve_places<kLanes, 7>(s, s.x + p * kLanes, s.y + p * kLanes);
  for (; p < places; ++p) convolve_places<kLanes, 1>(s, s.x + p * kLanes, s.y + p * kLanes);
}
CLONES void convolve_strip_8(const Strip& s, int64_t places) {
  convolve_strip<8>(s, places);
}
CLONES void convolve_strip_16(const Strip& s, int64_t places) {
  convolve_strip<16>(s, places);
}

bool suits(const ConvPlan& conv, std::span<const Tensor> inputs) {
  const ConvSize& size = conv.size;
  const Window& w = conv.window;
  const int64_t block = channel_block();
  if (block == 0 || w.kernel_size() != 1 || w.in != w.out || w.stride != Spatial{1, 1, 1} || inputs[1].data == nullptr)
    return false;
  const bool bias_known = inputs.size() < 3 || !inputs[2].present() || inputs[2].data != nullptr;
  if (!bias_known || size.in_channels < block) return false;
  const int64_t blocks = (size.out_channels + block - 1) / block, threads = thread_count();
  if (size.groups > 1) return size.in_channels / size.groups % block != 0 && size.groups < size.in_channels;
  return size.batch == 1 && blocks < 2 * threads && blocks % threads != 0;
}

}  // namespace

Plan plan_pointwise_conv(const ConvPlan& conv, std::span<const Tensor> inputs, PackedWeights& packed) {
  Plan plan;
  if (!suits(conv, inputs)) return plan;
  const ConvSize& size = conv.size;
  const int64_t lanes = channel_block(), places = conv.window.out_size();
  const int64_t in_group = size.in_channels / size.groups, out_group = size.out_channels / size.groups;
  const int64_t in_blocks = (size.in_channels + lanes - 1) / lanes,
                out_blocks = (size.out_channels + lanes - 1) / lanes;
  std::vector<OutBlock> blocks;
  int64_t weight_count = 0;
  for (int64_t b = 0; b < out_blocks; ++b) {
    const int64_t last_channel = std::min((b + 1) * lanes, size.out_channels) - 1;
    const int64_t first = b * lanes / out_group * in_group, last = (last_channel / out_group + 1) * in_group;
    blocks.push_back({first, last, weight_count});
    weight_count += (last - first) * lanes;
  }
  const bool has_bias = inputs.size() > 2 && inputs[2].present();
  const ChannelAffine affine =
      join_affine(conv.post_ops, size.out_channels, has_bias ? inputs[2].as<float>() : nullptr);
  std::vector<float> bias(static_cast<size_t>(out_blocks * lanes));
  if (!affine.shift.empty())
    std::ranges::copy(affine.shift, bias.begin());
  else if (has_bias)
    std::copy_n(inputs[2].as<float>(), size.out_channels, bias.begin());
  PackedWeights::Pack pack = packed.get(inputs[1].data, {}, [&] {
    const int64_t bytes = weight_count * static_cast<int64_t>(sizeof(float));
    std::shared_ptr<std::byte> memory(allocate(bytes));
    std::memset(memory.get(), 0, static_cast<size_t>(bytes));
    auto* to = reinterpret_cast<float*>(memory.get());
    for (int64_t o = 0; o < size.out_channels; ++o) {
      const OutBlock& block = blocks[static_cast<size_t>(o / lanes)];
      const float scale = affine.scale.empty() ? 1.0f : affine.scale[static_cast<size_t>(o)];
      for (int64_t i = 0; i < in_group; ++i) {
        float weight;  // of any address
        std::memcpy(&weight, inputs[1].as<std::byte>() + (o * in_group + i) * static_cast<int64_t>(sizeof(float)),
                    sizeof(float));
        const int64_t channel = o / out_group * in_group + i;
        to[block.weights_at + (channel - block.first) * lanes + o % lanes] = weight * scale;
      }
    }
    return memory;
  });

  std::vector<PostOp> later;
  int summand = -1;
  bool clears = false;  // channels beyond the last do not stay zero
  for (const PostOp& op : conv.post_ops) {
    if (op.kind == PostOp::kAffine) continue;
    if (op.kind == PostOp::kAdd) summand = static_cast<int>(inputs.size()) - 1;
    float zero = 0;
    if (op.kind == PostOp::kActivation) activate(op.activation, &zero, 1);
    clears = clears || zero != 0;
    later.push_back(op);
  }
  // Strips of places whose input stays in the nearest caches.
  const int64_t strip = std::min<int64_t>(places, 14 * 4);
  const int64_t strips = (places + strip - 1) / strip;
  plan = make_plan({conv.window.output_shape(size.batch, size.out_channels)}, [=](Tensors in, Tensors out) {
    const auto* weights = reinterpret_cast<const float*>(pack.get());
    const int64_t work = (blocks[0].last - blocks[0].first) * strip * lanes;
    parallel(size.batch * strips * out_blocks, 1 + (int64_t{1} << 18) / work, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t b = task % out_blocks, image = task / out_blocks / strips;
        const int64_t first = task / out_blocks % strips * strip, count = std::min(strip, places - first);
        const OutBlock& block = blocks[static_cast<size_t>(b)];
        const int64_t at = ((image * out_blocks + b) * places + first) * lanes;
        float* y = out[0].as<float>() + at;
        const float* x = in[0].as<float>() + (image * in_blocks * places + first) * lanes;
        const Strip s{x,
                      places * lanes,
                      block.first,
                      block.last,
                      weights + block.weights_at,
                      &bias[static_cast<size_t>(b * lanes)],
                      y};
        (lanes == 16 ? convolve_strip_16 : convolve_strip_8)(s, count);
        const float* add = summand < 0 ? nullptr : in[static_cast<size_t>(summand)].as<float>() + at;
        finish_rows(later, y, 0, 1, count * lanes, add);
      }
    });
    if (clears) clear_padding(out[0]);
  });
  plan.takes.assign(inputs.size(), Format::kDense);
  plan.takes[0] = plan.gives = Format::kBlocked;
  if (summand >= 0) plan.takes[static_cast<size_t>(summand)] = Format::kBlocked;
  plan.packed = 1;
  return plan;
}

}  // namespace backplane::cpu

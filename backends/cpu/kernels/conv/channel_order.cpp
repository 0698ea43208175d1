// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/channel_order.h"

#include <cstring>

#include "kernels/conv/channel_shuffle.h"
#include "runtime/memory.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kFloatBytes = sizeof(float);

// Replaces the tensor's data with `floats` floats, which `kept` owns. fill(old data, new data) writes them on the first
// call for these weights.
template <class Fill>
void replace(Tensor& tensor, PackedWeights& kept, int64_t floats, const Fill& fill) {
  const auto pack = kept.get(tensor, {}, [&] {
    std::shared_ptr<std::byte> memory(allocate(floats * kFloatBytes));
    fill(tensor.as<std::byte>(), memory.get());
    return memory;
  });
  tensor.data = const_cast<std::byte*>(pack.get());
}

}  // namespace

void ChannelOrder::pass(int64_t groups, std::vector<Tensor>& operands, std::vector<PostOp>& ops) {
  const int64_t channels = operands[1].shape[0];
  const auto order = [&](Tensor& tensor, PackedWeights& kept) {
    const int64_t floats = tensor.shape.elements(), row = floats / channels * kFloatBytes;
    replace(tensor, kept, floats, [&](const std::byte* from, std::byte* to) {
      for (int64_t c = 0; c < channels; ++c)
        std::memcpy(to + shuffle_source(c, channels, groups) * row, from + c * row, static_cast<size_t>(row));
    });
  };
  order(operands[1], weights_);
  for (PostOp& op : ops) {
    if (op.kind != PostOp::kAffine) continue;
    const PostOp before = op;
    for (int64_t c = 0; c < channels; ++c) {
      const auto to = static_cast<size_t>(shuffle_source(c, channels, groups)), from = static_cast<size_t>(c);
      op.scale[to] = before.scale[from];
      op.shift[to] = before.shift[from];
    }
  }
  if (operands.size() < 3 || !operands[2].present()) return;
  order(operands[2], bias_);
  const auto count = static_cast<size_t>(channels);
  ops.insert(ops.begin(), {PostOp::kAffine, std::vector(count, 1.0f), std::vector(count, 0.0f), {}});
}

void ChannelOrder::spread(int64_t groups, std::vector<Tensor>& operands, ConvSize& size) {
  Tensor& weights = operands[1];
  const int64_t in_group = size.in_channels / size.groups, out_group = size.out_channels / size.groups;
  const int64_t taps = weights.shape.elements(2, weights.shape.rank()) * kFloatBytes;
  const int64_t floats = size.out_channels * size.in_channels * (taps / kFloatBytes);
  replace(weights, weights_, floats, [&](const std::byte* from, std::byte* to) {
    std::memset(to, 0, static_cast<size_t>(floats * kFloatBytes));
    for (int64_t o = 0; o < size.out_channels; ++o) {
      for (int64_t i = 0; i < in_group; ++i) {
        const int64_t source = shuffle_source(o / out_group * in_group + i, size.in_channels, groups);
        std::memcpy(to + (o * size.in_channels + source) * taps, from + (o * in_group + i) * taps,
                    static_cast<size_t>(taps));
      }
    }
  });
  weights.shape[1] = size.in_channels;
  size.groups = 1;
}

}  // namespace backplane::cpu

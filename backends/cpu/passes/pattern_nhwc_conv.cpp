// SPDX-License-Identifier: Apache-2.0
#include "passes/pattern_nhwc_conv.h"

#include "kernels/conv/nhwc_conv.h"

namespace backplane::cpu {

namespace {

// Whether a Transpose only moves dimension 1 to the end, or with `to_front` the last dimension to dimension 1.
bool moves_channels(const Node& transpose, bool to_front) {
  const std::vector<int64_t> perm = transpose.ints("perm");
  const auto rank = static_cast<int64_t>(perm.size());
  if (rank < 3 || perm[0] != 0) return false;
  for (int64_t i = 1; i < rank; ++i) {
    const int64_t from = to_front ? (i == 1 ? rank - 1 : i - 1) : (i == rank - 1 ? 1 : i + 1);
    if (perm[static_cast<size_t>(i)] != from) return false;
  }
  return true;
}

}  // namespace

NhwcConvCall find_nhwc_conv(FusionGraph& g, uint32_t index) {
  Call& call = g.call(index);
  const Node node = g.node(index);
  if (call.skipped || node.op_type() != "NhwcConv" || node.domain() != kMicrosoft) return {};
  ChannelsFirst order;
  if (!set_channels_first(*call.kernel, order)) return {};  // a kernel for 16-bit floats, which wraps the one for fp32
  const uint32_t x = call.inputs[0];
  const uint32_t before = g.producer(x, {"Transpose"}), after = g.sole_reader(g.result(index), {"Transpose"});
  const bool is_for_this = before != BP_NONE && !g.is_output(x) && g.readers(x).size() == 1;
  order.input = is_for_this && moves_channels(g.node(before), false);
  order.output = after != BP_NONE && moves_channels(g.node(after), true);
  set_channels_first(*call.kernel, order);
  std::vector<uint32_t> operands(call.inputs.begin(), call.inputs.end());
  if (order.input) {
    g.take(before);
    g.call(before).skipped = true;
    operands[0] = g.call(before).inputs[0];
  }
  std::vector<uint32_t> joined{index};
  if (order.output) joined.push_back(after);
  g.call(joined.back()).row = call.row;
  g.call(joined.back()).node = call.node;
  std::unique_ptr<Kernel> kernel = std::move(call.kernel);
  g.replace(joined, std::move(kernel), std::move(operands));
  return {joined.back(), order.output};
}

}  // namespace backplane::cpu

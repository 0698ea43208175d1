// SPDX-License-Identifier: Apache-2.0
#include "passes/pattern_attention.h"

#include <array>

#include "kernels/attention/fused_attention.h"

namespace backplane::cpu {

namespace {

using Order = std::array<int, 4>;

// Returns the permutation of a Transpose with four dimensions, else nullopt.
std::optional<Order> order_of(const Node& transpose) {
  const std::vector<int64_t> perm = transpose.ints("perm");
  if (perm.size() != 4) return std::nullopt;
  Order order;
  for (size_t d = 0; d < 4; ++d) order[d] = static_cast<int>(perm[d]);
  return order;
}

// An operand, traced back through Transpose, and through Mul or Div by a constant, as long as each result has no other
// reader.
struct Operand {
  uint32_t value;
  Order order{0, 1, 2, 3};  // dimension d of the operand is dimension order[d] of `value`
  float scale = 1;
};
Operand trace(const FusionGraph& g, uint32_t value, std::vector<uint32_t>& joined) {
  Operand operand{value};
  for (;;) {
    if (g.is_output(operand.value) || g.readers(operand.value).size() != 1) return operand;
    const uint32_t call = g.producer(operand.value, {"Transpose", "Mul", "Div"});
    if (call == BP_NONE) return operand;
    if (g.is(call, {"Transpose"})) {
      const std::optional<Order> order = order_of(g.node(call));
      if (!order) return operand;
      Order before;
      for (size_t d = 0; d < 4; ++d) before[d] = (*order)[static_cast<size_t>(operand.order[d])];
      // One of the last two dimensions must stay contiguous: otherwise a copy is faster than a product with large
      // strides.
      if (before[2] != 3 && before[3] != 3) return operand;
      operand.order = before;
      operand.value = g.call(call).inputs[0];
    } else {
      const std::span<const uint32_t> in = g.call(call).inputs;
      const std::optional<float> factor = g.known_scalar(in[1]);
      if (!factor || g.type(in[0]).rank != 4) return operand;
      operand.scale *= g.is(call, {"Mul"}) ? *factor : 1 / *factor;
      operand.value = in[0];
    }
    joined.push_back(call);
  }
}

bool has_four_dimensions(const FusionGraph& g, uint32_t value) {
  return g.value(value).dtype == BP_DTYPE_FLOAT && g.type(value).rank == 4;
}

}  // namespace

void find_attention(FusionGraph& g, uint32_t softmax) {
  const int64_t axis = g.node(softmax).attr("axis", int64_t{-1});
  uint32_t scores = g.call(softmax).inputs[0];
  if ((axis != -1 && axis != 3) || !has_four_dimensions(g, scores)) return;
  const uint32_t mix = g.sole_reader(g.result(softmax), {"MatMul"});
  if (mix == BP_NONE || g.call(mix).inputs[0] != g.result(softmax)) return;

  std::vector<uint32_t> joined;
  auto made_by = [&](std::initializer_list<std::string_view> op_types) {
    return g.is_output(scores) || g.readers(scores).size() != 1 ? BP_NONE : g.producer(scores, op_types);
  };
  FusedAttention attention;
  uint32_t mask = BP_NONE;
  if (const uint32_t add = made_by({"Add"}); add != BP_NONE) {
    const std::span<const uint32_t> in = g.call(add).inputs;
    const size_t product = g.producer(in[0], {"MatMul", "Div", "Mul"}) != BP_NONE ? 0 : 1;
    if (!g.same_extents(in[product], scores)) return;
    mask = in[1 - product];
    scores = in[product];
    joined.push_back(add);
  }
  if (const uint32_t scaled = made_by({"Div", "Mul"}); scaled != BP_NONE) {
    const std::span<const uint32_t> in = g.call(scaled).inputs;
    const std::optional<float> factor = g.known_scalar(in[1]);
    if (!factor || !has_four_dimensions(g, in[0])) return;
    attention.scale = g.is(scaled, {"Mul"}) ? *factor : 1 / *factor;
    scores = in[0];
    joined.push_back(scaled);
  }
  const uint32_t product = made_by({"MatMul"});
  if (product == BP_NONE) return;
  joined.push_back(product);
  const std::span<const uint32_t> factors = g.call(product).inputs;
  if (!has_four_dimensions(g, factors[0]) || !has_four_dimensions(g, factors[1]) ||
      !has_four_dimensions(g, g.call(mix).inputs[1]))
    return;
  const Operand q = trace(g, factors[0], joined), k = trace(g, factors[1], joined);
  Operand v = trace(g, g.call(mix).inputs[1], joined);
  attention.scale *= q.scale * k.scale;
  attention.result_scale = v.scale;
  attention.q_order = q.order;
  attention.k_order = k.order;
  attention.v_order = v.order;
  joined.push_back(softmax);
  joined.push_back(mix);
  if (const uint32_t back = g.sole_reader(g.result(mix), {"Transpose"}); back != BP_NONE) {
    if (const std::optional<Order> order = order_of(g.node(back)); order && (*order)[3] == 3) {
      attention.result_order = *order;
      joined.push_back(back);
    }
  }
  std::vector<uint32_t> operands = {q.value, k.value, v.value};
  if (mask != BP_NONE) operands.push_back(mask);
  g.replace(joined, make_fused_attention(attention), std::move(operands));
}

}  // namespace backplane::cpu

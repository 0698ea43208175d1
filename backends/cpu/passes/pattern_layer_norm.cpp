// SPDX-License-Identifier: Apache-2.0
#include "passes/pattern_layer_norm.h"

#include "kernels/normalization/layer_norm.h"

namespace backplane::cpu {

namespace {

// Whether a call computes the mean over the last axis only, with keepdims = 1.
bool is_mean_of_rows(const FusionGraph& g, uint32_t call) {
  if (call == BP_NONE || g.call(call).inputs.size() != 2 || g.node(call).attr("keepdims", int64_t{1}) != 1)
    return false;
  const uint32_t axes = g.call(call).inputs[1];
  if (!g.known(axes) || g.value(axes).dtype != BP_DTYPE_INT64 || g.value(axes).shape.elements() != 1) return false;
  const int64_t axis = *g.value(axes).as<int64_t>();
  return axis == -1 || axis == g.type(g.call(call).inputs[0]).rank - 1;
}

// Returns the other operand of a call with the operand `value`, if it is known and has one number for each of `n`
// channels; else BP_NONE.
uint32_t channels_of(const FusionGraph& g, uint32_t call, uint32_t value, int64_t n) {
  const uint32_t other = call == BP_NONE ? BP_NONE : g.other(call, value);
  const bool fits = g.known(other) && g.value(other).dtype == BP_DTYPE_FLOAT && g.value(other).shape.rank() == 1 &&
                    g.value(other).shape[0] == n;
  return fits ? other : BP_NONE;
}

}  // namespace

void find_layer_norm(FusionGraph& g, uint32_t mean) {
  const uint32_t x = g.call(mean).inputs[0];
  if (!is_mean_of_rows(g, mean) || g.value(x).dtype != BP_DTYPE_FLOAT) return;
  const uint32_t subtract = g.sole_reader(g.result(mean), {"Sub"});
  if (subtract == BP_NONE || g.call(subtract).inputs[0] != x) return;
  const uint32_t centred = g.result(subtract);
  if (g.is_output(centred)) return;
  uint32_t square = BP_NONE, divide = BP_NONE;
  for (uint32_t reader : g.readers(centred)) {
    if (g.is(reader, {"Pow"}) && g.call(reader).inputs[0] == centred && g.is_scalar(g.call(reader).inputs[1], 2))
      square = reader;
    else if (g.is(reader, {"Mul"}) && g.call(reader).inputs[0] == centred && g.call(reader).inputs[1] == centred)
      square = reader;
    else if (g.is(reader, {"Div"}) && g.call(reader).inputs[0] == centred)
      divide = reader;
    else
      return;
  }
  if (square == BP_NONE || divide == BP_NONE) return;
  const uint32_t variance = g.sole_reader(g.result(square), {"ReduceMean"});
  if (!is_mean_of_rows(g, variance)) return;
  const uint32_t add = g.sole_reader(g.result(variance), {"Add"});
  const std::optional<float> epsilon = add == BP_NONE ? std::nullopt : g.known_scalar(g.other(add, g.result(variance)));
  if (!epsilon) return;
  const uint32_t root = g.sole_reader(g.result(add), {"Sqrt"});
  if (root == BP_NONE || g.sole_reader(g.result(root), {"Div"}) != divide || g.call(divide).inputs[1] != g.result(root))
    return;
  const int64_t n = g.extent(x, g.type(x).rank - 1);
  const uint32_t multiply = g.sole_reader(g.result(divide), {"Mul"});
  const uint32_t scale = channels_of(g, multiply, g.result(divide), n);
  if (scale == BP_NONE) return;
  const uint32_t shift = g.sole_reader(g.result(multiply), {"Add"});
  const uint32_t bias = channels_of(g, shift, g.result(multiply), n);
  if (bias == BP_NONE) return;
  for (uint32_t call : {square, add}) {  // a constant of extents [1,…,1] may add dimensions
    for (uint32_t value : g.call(call).inputs)
      if (g.known(value) && g.value(value).shape.rank() > g.type(x).rank) return;
  }
  const uint32_t joined[] = {mean, subtract, square, variance, add, root, divide, multiply, shift};
  g.replace(joined, make_layer_norm(-1, *epsilon), {x, scale, bias});
}

}  // namespace backplane::cpu

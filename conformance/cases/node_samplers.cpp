// SPDX-License-Identifier: Apache-2.0
// Draws the nodes of random graphs. All attributes are explicit, as in a canonical graph.
#include "cases/node_samplers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cases/graph_sampler.h"

namespace backplane::conform {
namespace {

using Names = std::vector<std::string>;

Extents concat(Extents a, const Extents& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// At most one argument of a call may draw a random number. The compiler chooses the order in which arguments are
// evaluated, but a seed must produce the same graph everywhere.

uint32_t any(GraphSampler& s) {
  const uint32_t x = s.chance(0.85) ? s.pick() : BP_NONE;
  return x != BP_NONE ? x : s.input(s.one_of<Extents>({{4, 6}, {2, 3, 5}, {7}, {2, 4, 6, 6}, {3, 8}}));
}
uint32_t any_rank(GraphSampler& s, size_t least, size_t most, const Extents& otherwise) {
  const uint32_t x = s.chance(0.85) ? s.pick_rank(least, most) : BP_NONE;
  return x != BP_NONE ? x : s.input(otherwise);
}
uint32_t image(GraphSampler& s) {
  const uint32_t x = s.pick([&](uint32_t v) {
    const Extents& shape = s.shape(v);
    return shape.size() == 4 && shape[2] >= 3 && shape[3] >= 3;
  });
  return x != BP_NONE && s.chance(0.85) ? x : s.input(s.one_of<Extents>({{1, 3, 8, 8}, {2, 4, 6, 6}, {1, 8, 5, 7}}));
}
double least(const GraphSampler& s, uint32_t x) {
  return *std::min_element(s.at(x).values.begin(), s.at(x).values.end());
}

bool unary(GraphSampler& s) {
  static const std::vector<std::pair<std::string, Attributes>> kOps = {
      {"Abs", {}},
      {"Neg", {}},
      {"Relu", {}},
      {"LeakyRelu", {{"alpha", 0.125f}}},
      {"Erf", {}},
      {"Exp", {}},
      {"Sigmoid", {}},
      {"Sin", {}},
      {"Cos", {}},
      {"Tanh", {}},
      {"Elu", {{"alpha", 1.5f}}},
      {"Selu", {{"alpha", 1.67326319f}, {"gamma", 1.05070102f}}},
      {"HardSigmoid", {{"alpha", 0.2f}, {"beta", 0.5f}}},
      {"HardSwish", {}},
      {"Softplus", {}},
      {"Softsign", {}},
      {"Mish", {}},
      {"Gelu", {{"approximate", std::string("none")}}},
      {"Gelu", {{"approximate", std::string("tanh")}}},
      {"Floor", {}},
      {"Round", {}},
  };
  const uint32_t x = any(s);
  const auto& [op, attributes] = s.one_of(kOps);
  return s.add(op, {x}, attributes);
}

bool positive(GraphSampler& s) {
  const uint32_t x = s.pick([&](uint32_t v) { return least(s, v) > 0.05; });
  return x != BP_NONE && s.add(s.one_of<std::string>({"Sqrt", "Log", "Reciprocal"}), {x});
}

// A second operand that broadcasts with `x`: another value of the graph, or a constant.
uint32_t partner(GraphSampler& s, uint32_t x, bool from_values, Fill fill) {
  const Extents& shape = s.shape(x);
  if (from_values) {
    return s.pick([&](uint32_t v) {
      const Extents& other = s.shape(v);
      for (size_t i = 1; i <= std::min(shape.size(), other.size()); ++i) {
        const int64_t a = shape[shape.size() - i], b = other[other.size() - i];
        if (a != b && a != 1 && b != 1) return false;
      }
      return true;
    });
  }
  Extents extents = shape;
  for (int64_t& extent : extents) extent = s.chance(0.4) ? 1 : extent;
  if (!extents.empty() && s.chance(0.3)) extents.erase(extents.begin());
  return s.constant(extents, fill);
}

bool binary(GraphSampler& s) {
  const uint32_t x = any(s);
  const Fill fill = s.chance(0.5) ? Fill::kAroundZero : Fill::kPositive;
  const uint32_t y = partner(s, x, s.chance(0.6), fill);
  return y != BP_NONE && s.add(s.one_of<std::string>({"Add", "Add", "Sub", "Mul", "Mul", "Max", "Min"}), {x, y});
}
bool sum_of_values(GraphSampler& s) {
  const uint32_t x = any(s), y = partner(s, x, true, Fill::kAroundZero);
  return y != BP_NONE && s.add(s.one_of<std::string>({"Add", "Sub", "Sum"}), {x, y});
}
bool quotient(GraphSampler& s) {
  const uint32_t x = any(s);
  const uint32_t y = s.chance(0.5) ? s.pick([&](uint32_t v) { return s.shape(v) == s.shape(x) && least(s, v) > 0.1; })
                                   : partner(s, x, false, Fill::kPositive);
  return y != BP_NONE && s.add("Div", {x, y});
}
bool power(GraphSampler& s) {
  const uint32_t x = s.pick([&](uint32_t v) { return least(s, v) > 0.05; });
  return x != BP_NONE && s.add("Pow", {x, s.constant({}, Fill::kPositive)});
}
bool prelu(GraphSampler& s) {
  const uint32_t x = any_rank(s, 2, 4, {2, 3, 5});
  Extents slope(s.shape(x).size() - 1, 1);
  slope[0] = s.shape(x)[1];
  return s.add("PRelu", {x, s.constant(slope, Fill::kAroundZero)});
}
bool clip(GraphSampler& s) {
  const uint32_t x = any(s);
  const uint32_t low = s.constant(reals(s.recipe().dtype, {}, {-0.5}));
  return s.add("Clip", {x, low, s.constant(reals(s.recipe().dtype, {}, {0.75}))});
}

bool matmul(GraphSampler& s) {
  const uint32_t x = any_rank(s, 2, 4, {4, 6});
  const int64_t k = s.shape(x).back(), n = s.random().integer(1, 12);
  return s.add("MatMul", {x, s.weights({k, n}, k)});
}
bool matmul_of_values(GraphSampler& s) {
  const uint32_t x = any_rank(s, 2, 2, {4, 6});
  uint32_t y = s.pick([&](uint32_t v) { return s.shape(v).size() == 2 && s.shape(v)[0] == s.shape(x)[1]; });
  if (y == BP_NONE) y = s.input({s.shape(x)[1], s.random().integer(1, 8)});
  return s.add("MatMul", {x, y});
}
bool gemm(GraphSampler& s) {
  const uint32_t x = any_rank(s, 2, 2, {4, 6});
  const bool trans_a = s.chance(0.3), trans_b = s.chance(0.5), bias = !s.recipe().linear && s.chance(0.7);
  const int64_t k = s.shape(x)[trans_a ? 0 : 1], n = s.random().integer(1, 9);
  std::vector<uint32_t> inputs = {x, s.weights(trans_b ? Extents{n, k} : Extents{k, n}, k)};
  if (bias) inputs.push_back(s.constant(s.chance(0.5) ? Extents{n} : Extents{1, n}, Fill::kAroundZero));
  return s.add("Gemm", inputs,
               {{"alpha", s.chance(0.7) ? 1.0f : 0.5f},
                {"beta", s.chance(0.7) ? 1.0f : 2.0f},
                {"transA", int64_t{trans_a}},
                {"transB", int64_t{trans_b}}});
}

bool conv(GraphSampler& s) {
  const uint32_t x = image(s);
  const int64_t channels = s.shape(x)[1], kernel = s.chance(0.6) ? 3 : 1, stride = s.chance(0.8) ? 1 : 2,
                pad = kernel == 3 && s.chance(0.7) ? 1 : 0;
  const bool depthwise = s.chance(0.3), transposed = s.chance(0.15), bias = !s.recipe().linear && s.chance(0.6);
  const int64_t group = depthwise ? channels : 1, out = depthwise ? channels : s.random().integer(1, 8);
  const Extents w =
      transposed ? Extents{channels, out / group, kernel, kernel} : Extents{out, channels / group, kernel, kernel};
  std::vector<uint32_t> inputs = {x, s.weights(w, channels / group * kernel * kernel)};
  if (bias) inputs.push_back(s.constant({out}, Fill::kAroundZero));
  Attributes attributes = {{"auto_pad", std::string("NOTSET")},
                           {"dilations", Extents{1, 1}},
                           {"group", group},
                           {"kernel_shape", Extents{kernel, kernel}},
                           {"pads", Extents{pad, pad, pad, pad}},
                           {"strides", Extents{stride, stride}}};
  if (transposed) attributes.push_back({"output_padding", Extents{0, 0}});
  return s.add(transposed ? "ConvTranspose" : "Conv", inputs, attributes);
}

Attributes pool_attributes(GraphSampler& s) {
  const int64_t kernel = s.random().integer(2, 3), stride = s.random().integer(1, 2);
  return {{"auto_pad", std::string("NOTSET")},
          {"ceil_mode", int64_t{s.chance(0.3)}},
          {"dilations", Extents{1, 1}},
          {"kernel_shape", Extents{kernel, kernel}},
          {"pads", s.chance(0.5) ? Extents{0, 0, 0, 0} : Extents{1, 1, 1, 1}},
          {"strides", Extents{stride, stride}}};
}
bool max_pool(GraphSampler& s) {
  Attributes attributes = pool_attributes(s);
  attributes.push_back({"storage_order", int64_t{0}});
  return s.add("MaxPool", {image(s)}, attributes);
}
bool average_pool(GraphSampler& s) {
  Attributes attributes = pool_attributes(s);
  attributes.push_back({"count_include_pad", int64_t{s.chance(0.5)}});
  return s.add("AveragePool", {image(s)}, attributes);
}
bool global_max(GraphSampler& s) {
  return s.add("GlobalMaxPool", {image(s)});
}
bool global_average(GraphSampler& s) {
  return s.add("GlobalAveragePool", {image(s)});
}
bool resize(GraphSampler& s) {
  const bool linear = s.chance(0.5);
  return s.add("Resize", {image(s), BP_NONE, s.constant(floats({4}, {1, 1, 2, 2}))},
               {{"antialias", int64_t{0}},
                {"coordinate_transformation_mode", std::string(linear ? "half_pixel" : "asymmetric")},
                {"cubic_coeff_a", -0.75f},
                {"exclude_outside", int64_t{0}},
                {"extrapolation_value", 0.0f},
                {"keep_aspect_ratio_policy", std::string("stretch")},
                {"mode", std::string(linear ? "linear" : "nearest")},
                {"nearest_mode", std::string("floor")}});
}

bool batch_normalization(GraphSampler& s) {
  const uint32_t x = s.chance(0.7) ? image(s) : any_rank(s, 2, 4, {3, 8});
  const Extents channels = {s.shape(x)[1]};
  std::vector<uint32_t> inputs = {x};
  for (const Fill fill : {Fill::kAroundZero, Fill::kAroundZero, Fill::kAroundZero, Fill::kPositive}) {
    inputs.push_back(s.constant(channels, fill));
  }
  return s.add("BatchNormalization", inputs, {{"epsilon", 1e-5f}, {"momentum", 0.9f}, {"training_mode", int64_t{0}}});
}
bool layer_normalization(GraphSampler& s) {
  const uint32_t x = any_rank(s, 2, 4, {3, 8});
  const int64_t n = s.shape(x).back();
  std::vector<uint32_t> inputs = {x, s.constant({n}, Fill::kAroundZero)};
  if (s.chance(0.7)) inputs.push_back(s.constant({n}, Fill::kAroundZero));
  return s.add("LayerNormalization", inputs, {{"axis", int64_t{-1}}, {"epsilon", 1e-5f}, {"stash_type", int64_t{1}}});
}
bool instance_normalization(GraphSampler& s) {
  const uint32_t x = image(s);
  const Extents channels = {s.shape(x)[1]};
  const uint32_t scale = s.constant(channels, Fill::kAroundZero);
  return s.add("InstanceNormalization", {x, scale, s.constant(channels, Fill::kAroundZero)}, {{"epsilon", 1e-5f}});
}
int64_t axis_of(GraphSampler& s, uint32_t x) {
  const auto rank = static_cast<int64_t>(s.shape(x).size());
  return s.random().integer(-rank, rank - 1);
}
bool softmax(GraphSampler& s) {
  const uint32_t x = any_rank(s, 1, 4, {3, 8});
  const int64_t axis = axis_of(s, x);
  return s.add(s.one_of<std::string>({"Softmax", "Softmax", "LogSoftmax"}), {x}, {{"axis", axis}});
}

bool reduce_with(GraphSampler& s, const Names& ops) {
  const uint32_t x = any_rank(s, 2, 4, {2, 3, 5});
  const int64_t keepdims = s.chance(0.6), axis = axis_of(s, x);
  return s.add(s.one_of(ops), {x, s.constant(integers({axis}))},
               {{"keepdims", keepdims}, {"noop_with_empty_axes", int64_t{0}}});
}
bool reduce(GraphSampler& s) {
  return reduce_with(
      s, {"ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd"});
}
bool reduce_linear(GraphSampler& s) {
  return reduce_with(s, {"ReduceSum", "ReduceMean"});
}

bool transpose(GraphSampler& s) {
  const uint32_t x = any_rank(s, 2, 4, {2, 3, 5});
  Extents perm(s.shape(x).size());
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = perm.size(); i > 1; --i) {
    std::swap(perm[i - 1], perm[static_cast<size_t>(s.random().integer(0, static_cast<int64_t>(i) - 1))]);
  }
  return s.add("Transpose", {x}, {{"perm", perm}});
}
bool reshape(GraphSampler& s) {
  const uint32_t x = any(s);
  const int64_t n = s.at(x).count();
  const std::vector<Extents> shapes = {{n},
                                       {-1},
                                       {1, -1},
                                       n % 2 == 0 ? Extents{2, -1} : Extents{n, 1},
                                       n % 12 == 0 ? Extents{1, 3, 4, -1} : Extents{-1, 1}};
  return s.add("Reshape", {x, s.constant(integers(s.one_of(shapes)))}, {{"allowzero", int64_t{0}}});
}
bool flatten(GraphSampler& s) {
  return s.add("Flatten", {any_rank(s, 2, 4, {2, 3, 5})}, {{"axis", int64_t{1}}});
}
bool unsqueeze(GraphSampler& s) {
  return s.add("Unsqueeze", {any_rank(s, 1, 3, {4, 6}), s.constant(integers({s.random().integer(0, 1)}))});
}
bool squeeze(GraphSampler& s) {
  const uint32_t x = s.pick([&](uint32_t v) { return std::count(s.shape(v).begin(), s.shape(v).end(), 1) == 1; });
  if (x == BP_NONE) return false;
  const auto one = std::find(s.shape(x).begin(), s.shape(x).end(), 1);
  return s.add("Squeeze", {x, s.constant(integers({one - s.shape(x).begin()}))});
}
bool slice(GraphSampler& s) {
  const uint32_t x = any_rank(s, 1, 4, {4, 6});
  const int64_t axis = axis_of(s, x), n = s.shape(x)[static_cast<size_t>(normal_axis(axis, s.at(x).rank()))];
  const int64_t start = s.random().integer(0, n / 2), step = s.random().integer(1, 2);
  const uint32_t starts = s.constant(integers({start})), ends = s.constant(integers({s.chance(0.5) ? n : -1})),
                 axes = s.constant(integers({axis}));
  return s.add("Slice", {x, starts, ends, axes, s.constant(integers({step}))});
}
bool gather(GraphSampler& s) {
  const uint32_t x = any_rank(s, 1, 4, {4, 6});
  const int64_t axis = axis_of(s, x), n = s.shape(x)[static_cast<size_t>(normal_axis(axis, s.at(x).rank()))];
  Extents chosen(static_cast<size_t>(s.random().integer(1, 4)));
  for (int64_t& i : chosen) i = s.random().integer(-n, n - 1);
  return s.add("Gather", {x, s.constant(integers(chosen))}, {{"axis", axis}});
}
bool pad(GraphSampler& s) {
  const uint32_t x = any_rank(s, 2, 4, {4, 6});
  Extents pads(2 * s.shape(x).size(), 0);
  for (int64_t& width : pads) width = s.chance(0.3) ? 1 : 0;
  return s.add("Pad", {x, s.constant(integers(pads))}, {{"mode", s.one_of<std::string>({"constant", "edge"})}});
}
bool expand(GraphSampler& s) {
  const uint32_t x = any_rank(s, 1, 3, {3, 1});
  return s.add("Expand", {x, s.constant(integers(concat({2}, s.shape(x))))});
}
bool tile(GraphSampler& s) {
  const uint32_t x = any_rank(s, 1, 3, {3, 4});
  Extents repeats(s.shape(x).size(), 1);
  s.one_of<int>({0, 1}) == 0 ? repeats.front() = 2 : repeats.back() = 2;
  return s.add("Tile", {x, s.constant(integers(repeats))});
}
bool concat_values(GraphSampler& s) {
  const uint32_t x = any_rank(s, 1, 4, {4, 6});
  const auto axis = static_cast<size_t>(s.random().integer(0, s.at(x).rank() - 1));
  const uint32_t y = s.pick([&](uint32_t v) {
    Extents other = s.shape(v);
    if (other.size() != s.shape(x).size()) return false;
    other[axis] = s.shape(x)[axis];
    return other == s.shape(x);
  });
  return y != BP_NONE && s.add("Concat", {x, y}, {{"axis", static_cast<int64_t>(axis)}});
}
bool split(GraphSampler& s) {
  const uint32_t x = s.pick([&](uint32_t v) { return !s.shape(v).empty() && s.shape(v).back() >= 2; });
  if (x == BP_NONE) return false;
  const int64_t n = s.shape(x).back(), first = s.random().integer(1, n - 1);
  return s.add("Split", {x, s.constant(integers({first, n - first}))}, {{"axis", int64_t{-1}}}, 2);
}
bool depth_to_space(GraphSampler& s) {
  const uint32_t x = s.pick([&](uint32_t v) { return s.shape(v).size() == 4 && s.shape(v)[1] % 4 == 0; });
  return x != BP_NONE &&
         s.add("DepthToSpace", {x}, {{"blocksize", int64_t{2}}, {"mode", s.one_of<std::string>({"DCR", "CRD"})}});
}
bool identity(GraphSampler& s) {
  return s.add("Identity", {any(s)});
}

bool compare(GraphSampler& s) {
  const uint32_t x = any(s), y = partner(s, x, s.chance(0.5), Fill::kAroundZero);
  return y != BP_NONE &&
         s.add(s.one_of<std::string>({"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"}), {x, y});
}
bool logic(GraphSampler& s) {
  const uint32_t x = s.pick_bool(), y = s.pick_bool();
  if (x == BP_NONE) return false;
  if (s.chance(0.4)) return s.add("Not", {x});
  return s.shape(x) == s.shape(y) && s.add(s.one_of<std::string>({"And", "Or", "Xor"}), {x, y});
}
bool where(GraphSampler& s) {
  const uint32_t condition = s.pick_bool();
  if (condition == BP_NONE) return false;
  const uint32_t x = s.pick([&](uint32_t v) { return s.shape(v) == s.shape(condition); });
  return x != BP_NONE && s.add("Where", {condition, x, partner(s, x, s.chance(0.4), Fill::kAroundZero)});
}
bool cast(GraphSampler& s) {
  const uint32_t x = s.pick_bool();
  return x != BP_NONE &&
         s.add("Cast", {x},
               {{"round_mode", std::string("up")}, {"saturate", int64_t{1}}, {"to", int64_t{s.recipe().dtype}}});
}

constexpr NodeSampler kMakers[] = {
    {unary, 4, false},
    {positive, 1, false},
    {binary, 3, false},
    {sum_of_values, 1, true},
    {quotient, 1, false},
    {power, 1, false},
    {prelu, 1, false},
    {clip, 1, false},
    {matmul, 2, true},
    {matmul_of_values, 1, false},
    {gemm, 1, true},
    {conv, 2, true},
    {max_pool, 1, false},
    {average_pool, 1, true},
    {global_max, 1, false},
    {global_average, 1, true},
    {resize, 1, false},
    {batch_normalization, 1, false},
    {layer_normalization, 1, false},
    {instance_normalization, 1, false},
    {softmax, 1, false},
    {reduce, 1, false},
    {reduce_linear, 1, true},
    {transpose, 1, true},
    {reshape, 1, true},
    {flatten, 1, true},
    {unsqueeze, 1, true},
    {squeeze, 1, true},
    {slice, 1, true},
    {gather, 1, true},
    {pad, 1, true},
    {expand, 1, true},
    {tile, 1, true},
    {concat_values, 1, true},
    {split, 1, true},
    {depth_to_space, 1, true},
    {identity, 1, true},
    {compare, 1, false},
    {logic, 1, false},
    {where, 1, false},
    {cast, 1, false},
};

}  // namespace

std::span<const NodeSampler> node_samplers() {
  return kMakers;
}

}  // namespace backplane::conform

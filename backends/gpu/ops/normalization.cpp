// SPDX-License-Identifier: Apache-2.0
// BatchNormalization, as a factor and a summand for each channel; normalizations of rows; Softmax and related; LRN.
#include <algorithm>
#include <initializer_list>

#include "ops/rows.h"
#include "ops/softmax.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

// Throws unless each of these inputs has one element for each channel of input 0.
void check_channels(const Emit& e, std::initializer_list<uint32_t> slots) {
  const Shape wanted{e.shape(0)[1]};
  for (const uint32_t slot : slots) {
    if (e.shape(slot) != wanted)
      throw sdk::Error(BP_TYPE_MISMATCH, "input " + std::to_string(slot) + " has shape " + to_string(e.shape(slot)) +
                                             " instead of " + to_string(wanted) + ", one number per channel");
  }
}

void emit_batch_normalization(Emit& e, std::string_view) {
  check_channels(e, {1, 2, 3, 4});
  const Shape shape = e.shape(0);
  const bp_dtype_t dtype = e.node.input(0).dtype();
  const Tensor scale = e.input(1), shift = e.input(2), mean = e.input(3), variance = e.input(4);
  const auto whole = [](const Tensor& x) { return View{x, {1}, 0}; };
  // If inputs 1 to 4 are constant, `factor` and `term` are computed once, when the plan is prepared.
  const std::string epsilon = literal(e.node.float_attribute("epsilon", 1e-5f));
  const Tensor factor =
      e.computed("$0 / sqrt($1 + ($T)" + epsilon + ")", BP_DTYPE_FLOAT, scale.shape, {whole(scale), whole(variance)});
  const Tensor term =
      e.computed("$0 - $1 * $2", BP_DTYPE_FLOAT, scale.shape, {whole(shift), whole(mean), whole(factor)});
  const auto channel = [&](const Tensor& x) {
    View view{x, std::vector<int64_t>(shape.size()), 0};
    view.strides[1] = 1;
    return view;
  };
  e.formula("$0 * $1 + $2", dtype, shape, {Operand(0), channel(factor), channel(term)});
}

Verdict supports_batch_normalization(const Node& node) {
  if (Verdict v = expect(node).integer("training_mode", 0, 0).rank(0, 2); !accepted(v)) return v;
  for (uint32_t i = 1; i < 5; ++i) {
    const Value each = node.input(i);
    const int64_t channels = node.input(0).extent(1);
    if (each.rank() != 1 || (each.extent(0) >= 0 && channels >= 0 && each.extent(0) != channels))
      return sdk::no(BP_REASON_SHAPE, "input " + std::to_string(i) + " has shape " + to_string(each.extents()) +
                                          ", not one element per channel");
  }
  return accept();
}

// ---- rows ----------------------------------------------------------------------------------------------------------

// The arguments of kernels/normalize.cl. If span is 0, each element of a row has its own scale and shift; otherwise
// each channel of `span` adjacent elements has one (BY_CHANNEL).
struct Normalization {
  Rows rows;
  int64_t period = 1, span = 0;
  bool centered = true;
  Tensor scale, shift, means, deviations;
};

void emit_normalize(Emit& e, const Tensor& x, const Tensor& y, const Normalization& p) {
  // On a CPU a row is computed by one work item, as synchronizing several would slow its loops.
  Rows rows = p.rows;
  const bool alone = e.caps().kind == BP_DEVICE_CPU;
  if (alone) rows.lanes = 1;
  std::string options = "-DTYPE=" + Emit::type(x) + rows.macros() + " -DWIDE=" + (alone ? "16" : "1") +
                        (p.centered ? " -DCENTERED" : "") + (p.span != 0 ? " -DBY_CHANNEL" : "");
  options += " -DOUT=" + Emit::type(y) + " -DSCALE_TYPE=" + Emit::type(p.scale ? p.scale : x);
  if (p.scale) options += " -DSCALE";
  if (p.shift) options += " -DSHIFT";
  if (p.means) options += " -DMEAN";
  if (p.deviations) options += " -DDEVIATION";
  LaunchBuilder launch = e.launch("normalize", "normalize_rows", options);
  launch.in(x).in(p.scale ? p.scale : x).in(p.shift ? p.shift : x).out(y);
  // The kernel does not write unused outputs, so it can be passed any buffer for them.
  p.means ? launch.out(p.means) : launch.in(x);
  p.deviations ? launch.out(p.deviations) : launch.in(x);
  launch.arg(rows.count()).arg(rows.n).arg(p.period).arg(std::max<int64_t>(p.span, 1));
  launch.arg(e.node.float_attribute("epsilon", 1e-5f));
  rows.range(launch);
}

// LayerNormalization and RMSNormalization normalize over the last dimensions, from the axis on. The scale and the shift
// broadcast to x; usually all rows have the same scale and shift.
void emit_layer_normalization(Emit& e, std::string_view kind) {
  const Tensor x = e.input(0);
  const size_t axis = axis_of(e.node.int_attribute("axis", -1), x.rank());
  const auto split = static_cast<ptrdiff_t>(axis);
  const auto factors = [&](uint32_t slot) {
    const Tensor each = e.input(slot);
    return each ? broadcast_view(each, x.shape) : View{{}, std::vector<int64_t>(x.rank()), 0};
  };
  const View scale = factors(1), shift = factors(2);
  const auto differ_by_row = [&](const View& view) {
    return std::any_of(view.strides.begin(), view.strides.begin() + split, [](int64_t stride) { return stride != 0; });
  };
  const auto shared = [&](const View& view) {
    const Shape row(x.shape.begin() + split, x.shape.end());
    if (!view.tensor || view.tensor.count() == elements(row)) return view.tensor;
    const std::vector<int64_t> strides(view.strides.begin() + split, view.strides.end());
    return e.computed("$0", view.tensor.dtype, row, {{view.tensor, strides, 0}});
  };
  Normalization p{.rows = rows_of(e.caps(), x.shape, axis, x.rank()), .centered = kind == "layer"};
  Shape statistics = x.shape;
  std::fill(statistics.begin() + split, statistics.end(), 1);
  if (e.has_output(1)) p.means = e.output(1, statistics);
  if (e.has_output(2)) p.deviations = e.output(2, statistics);
  if (!differ_by_row(scale) && !differ_by_row(shift)) {
    p.scale = shared(scale);
    p.shift = shared(shift);
    return emit_normalize(e, x, e.output(0, x.shape), p);
  }
  const Tensor normalized = e.scratch(x.dtype == BP_DTYPE_DOUBLE ? BP_DTYPE_DOUBLE : BP_DTYPE_FLOAT, x.shape);
  emit_normalize(e, x, normalized, p);
  if (!e.has_output(0)) return;
  std::vector<Operand> operands{View{normalized, dense_strides(x.shape), 0}, scale};
  if (shift.tensor) operands.emplace_back(shift);
  e.formula(shift.tensor ? "$0 * $1 + $2" : "$0 * $1", e.node.output(0).dtype(), x.shape, operands);
}

// With a `stash_type` of double, means and variances are computed in double, which the kernel does only if x is double.
Verdict supports_precision(const Node& node) {
  if (node.int_attribute("stash_type", BP_DTYPE_FLOAT) == BP_DTYPE_DOUBLE && node.input(0).dtype() != BP_DTYPE_DOUBLE)
    return sdk::no(BP_REASON_ATTRIBUTE, "stash_type is double, but input 0 is not");
  return accept();
}

Verdict supports_layer_normalization(const Node& node) {
  constexpr bp_dtype_set_t kStatistics = one(BP_DTYPE_FLOAT);
  return expect(node)
      .output_dtype(1, kStatistics)
      .output_dtype(2, kStatistics)
      .rank(0, 1)
      .same_dtype(1, 2)
      .also(supports_precision);
}

// The result has the type of the scale.
Verdict supports_rms_normalization(const Node& node) {
  return expect(node)
      .input_dtype(1, kFloats)
      .output_dtype(0, one(node.input(1).dtype()))
      .rank(0, 1)
      .also(supports_precision);
}

// InstanceNormalization and GroupNormalization normalize over all positions of one channel or of several, with a scale
// and a shift for each channel.
void emit_group_normalization(Emit& e, std::string_view kind) {
  const Tensor x = e.input(0);
  const int64_t channels = x.shape[1], space = elements(x.shape, 2, x.rank());
  const int64_t groups = kind == "instance" ? channels : e.node.int_attribute("num_groups", 0);
  if (groups < 0 || (groups == 0 ? channels != 0 : channels % groups != 0))
    throw sdk::Error(BP_INVALID_MODEL,
                     std::to_string(channels) + " channels cannot form " + std::to_string(groups) + " groups");
  check_channels(e, {1, 2});
  const int64_t step = groups == 0 ? 0 : channels / groups;
  Normalization p{.rows = rows_of(e.caps(), {x.shape[0] * groups, step * space}, 1, 2),
                  .period = std::max<int64_t>(groups, 1),
                  .span = std::max<int64_t>(space, 1)};
  p.scale = e.input(1);
  p.shift = e.input(2);
  emit_normalize(e, x, e.output(0, x.shape), p);
}

Verdict supports_group_normalization(const Node& node) {
  return expect(node).rank(0, 2).same_dtype(1, 2).also(supports_precision);
}

// Softmax, LogSoftmax, Hardmax and LpNormalization, along an axis. `kind` is KIND of kernels/softmax.cl, or "norm".
void emit_softmax(Emit& e, std::string_view kind) {
  const Tensor x = e.input(0);
  const size_t axis = axis_of(e.node.int_attribute("axis", -1), x.rank());
  const Tensor y = e.output(0, x.shape);
  if (kind == "norm") kind = e.node.int_attribute("p", 2) == 1 ? "3" : "4";
  emit_softmax(e, x, y, axis, kind);
}

Verdict supports_axis(const Node& node) {
  return expect(node).rank(0, 1);
}

Verdict supports_lp_normalization(const Node& node) {
  return expect(node).integer("p", 1, 2).also(supports_axis);
}

void emit_lrn(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  const int64_t size = e.node.int_attribute("size", 1);
  const Tensor y = e.output(0, x.shape);
  const float beta = e.node.float_attribute("beta", 0.75f);
  // The most common power is computed with square roots, which all compilers vectorize.
  const std::string power = beta == 0.75f ? "sqrt(v) * sqrt(sqrt(v))" : "pow(v, (C(TYPE))" + literal(beta) + ")";
  const int64_t inner = elements(x.shape, 2, x.rank());
  e.launch("lrn", "lrn",
           "-DTYPE=" + Emit::type(x) + " -DBEFORE=" + std::to_string((size - 1) / 2) +
               " -DAFTER=" + std::to_string(size / 2) +
               " -DALPHA=" + literal(e.node.float_attribute("alpha", 1e-4f) / static_cast<float>(size)) +
               " -DBIAS=" + literal(e.node.float_attribute("bias", 1)),
           "#define POWER(v) " + power + "\n")
      .in(x)
      .out(y)
      .arg(x.shape[1])
      .arg(inner)
      .range(inner, x.shape[1], x.shape[0]);
}

Verdict supports_lrn(const Node& node) {
  return expect(node)
      .that(node.attribute("size") != nullptr, BP_REASON_ATTRIBUTE, "size is missing")
      .integer("size", 1, INT32_MAX)
      .rank(0, 2);
}

constexpr bp_dtype_set_t kNormalized = kFloats & ~one(BP_DTYPE_DOUBLE);

}  // namespace

std::span<const Row> normalization_rows() {
  static constexpr Row kRows[] = {
      {"", "BatchNormalization", 9, kNormalized, {5, 5}, supports_batch_normalization, emit_batch_normalization},
      {"",
       "LayerNormalization",
       17,
       kFloats,
       {2, 3, Form::kSame, 3},
       supports_layer_normalization,
       emit_layer_normalization,
       "layer"},
      {"",
       "RMSNormalization",
       23,
       kFloats,
       {2, 2, Form::kOpen},
       supports_rms_normalization,
       emit_layer_normalization,
       "rms"},
      {"",
       "InstanceNormalization",
       6,
       kFloats,
       {3, 3},
       supports_group_normalization,
       emit_group_normalization,
       "instance"},
      {"", "GroupNormalization", 21, kFloats, {3, 3}, supports_group_normalization, emit_group_normalization, "group"},
      {"", "Softmax", 13, kFloats, kUnary, supports_axis, emit_softmax, "0"},
      {"", "LogSoftmax", 13, kFloats, kUnary, supports_axis, emit_softmax, "1"},
      {"", "Hardmax", 13, kFloats, kUnary, supports_axis, emit_softmax, "2"},
      {"", "LpNormalization", 1, kFloats, kUnary, supports_lp_normalization, emit_softmax, "norm"},
      {"", "LRN", 1, kFloats, kUnary, supports_lrn, emit_lrn},
  };
  return kRows;
}

}  // namespace backplane::gpu

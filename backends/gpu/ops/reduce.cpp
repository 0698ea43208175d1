// SPDX-License-Identifier: Apache-2.0
// Reduce*, ArgMax, ArgMin, CumSum, CumProd.
#include <algorithm>

#include "backplane/sdk/weights.hpp"
#include "ops/rows.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

// The input as rows along the dimensions to reduce, transposed if these are not adjacent.
struct Reduction {
  Tensor x;
  Rows rows;
  Shape shape;  // of the result
};

Reduction reduction_of(Emit& e) {
  Tensor x = e.input(0);
  std::vector<int64_t> axes = e.ints(1);
  if (axes.empty()) axes = e.node.ints_attribute("axes");
  std::vector<bool> gone = axis_set(axes, x.rank());
  if (axes.empty() && e.node.int_attribute("noop_with_empty_axes", 0) == 0) gone.assign(x.rank(), true);
  const bool keep = e.node.int_attribute("keepdims", 1) != 0;
  Reduction r;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (!gone[i])
      r.shape.push_back(x.shape[i]);
    else if (keep)
      r.shape.push_back(1);
  }
  const auto first = std::ranges::find(gone, true);
  const auto last = std::find(first, gone.end(), false);
  if (std::find(last, gone.end(), true) == gone.end()) {
    r.x = x;
    r.rows =
        rows_of(e.caps(), x.shape, static_cast<size_t>(first - gone.begin()), static_cast<size_t>(last - gone.begin()));
    return r;
  }
  Shape kept, lost;
  std::vector<int64_t> kept_strides, lost_strides;
  const std::vector<int64_t> dense = dense_strides(x.shape);
  for (size_t i = 0; i < x.rank(); ++i) {
    (gone[i] ? lost : kept).push_back(x.shape[i]);
    (gone[i] ? lost_strides : kept_strides).push_back(dense[i]);
  }
  const size_t begin = kept.size();
  kept.insert(kept.end(), lost.begin(), lost.end());
  kept_strides.insert(kept_strides.end(), lost_strides.begin(), lost_strides.end());
  r.x = e.computed("$0", x.dtype, kept, {{x, kept_strides, 0}});
  r.rows = rows_of(e.caps(), kept, begin, kept.size());
  return r;
}

// Expressions of type C(TYPE) for FIRST, MAP(v), JOIN(a, b) and FINISH(a) of kernels/reduce.cl. An empty `first` stands
// for the lowest or highest value of the type.
struct Formula {
  std::string_view name, first, map, join, finish;
};
constexpr Formula kFormulas[] = {
    {"sum", "0", "v", "a + b", "a"},
    {"mean", "0", "v", "a + b", "a / n"},
    {"l1", "0", "(v < 0 ? -v : v)", "a + b", "a"},
    {"l2", "0", "v * v", "a + b", "sqrt(a)"},
    {"squares", "0", "v * v", "a + b", "a"},
    {"log", "0", "v", "a + b", "log(a)"},
    {"logexp", "0", "exp(v - shift)", "a + b", "log(a) + shift"},
    {"product", "1", "v", "a * b", "a"},
    {"max", "", "v", "a != a || a > b ? a : b", "a"},
    {"min", "", "v", "a != a || a < b ? a : b", "a"},
};

void emit_reduce(Emit& e, std::string_view kind) {
  const Reduction r = reduction_of(e);
  const Formula& f = *std::ranges::find(kFormulas, kind, &Formula::name);
  const std::string first = f.first.empty() ? extreme(r.x.dtype, kind == "max") : std::string(f.first);
  const auto define = [](const char* name, std::string_view text) {
    return "#define " + std::string(name) + " (" + std::string(text) + ")\n";
  };
  const std::string formula =
      define("FIRST", first) + define("MAP(v)", f.map) + define("JOIN(a, b)", f.join) + define("FINISH(a)", f.finish);
  const Tensor y = e.output(0, r.shape);
  // On a CPU, a work item reduces as many rows as a cache line has floats, or 4 times as many if there is enough work.
  constexpr int64_t kLeast = 16;
  if (e.caps().kind == BP_DEVICE_CPU && r.rows.inner >= kLeast && kind != "logexp") {
    const int64_t wide =
        r.rows.count() >= 4 * kLeast * 8 * e.caps().units && r.rows.inner >= 4 * kLeast ? 4 * kLeast : kLeast;
    const int64_t items = r.rows.outer * ((r.rows.inner + wide - 1) / wide);
    e.launch("reduce", "reduce_wide", "-DTYPE=" + Emit::type(r.x) + " -DWIDE=" + std::to_string(wide), formula)
        .in(r.x)
        .out(y)
        .arg(items)
        .arg(r.rows.n)
        .arg(r.rows.inner)
        .range(items);
    return;
  }
  LaunchBuilder launch =
      e.launch("reduce", "reduce",
               "-DTYPE=" + Emit::type(r.x) + r.rows.macros() + (kind == "logexp" ? " -DSHIFTED" : ""), formula);
  launch.in(r.x).out(y).arg(r.rows.count()).arg(r.rows.n).arg(std::max<int64_t>(r.rows.inner, 1));
  r.rows.range(launch);
}

Verdict supports_reduce(const Node& node) {
  std::vector<int64_t> axes = sdk::weight_ints(node.input(1)).value_or(std::vector<int64_t>{});
  const int64_t rank = node.input(0).rank();
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank)
      return sdk::no(BP_REASON_ATTRIBUTE,
                     "axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
    if (axis < 0) axis += rank;
  }
  std::ranges::sort(axes);
  if (const auto repeated = std::ranges::adjacent_find(axes); repeated != axes.end())
    return sdk::no(BP_REASON_ATTRIBUTE, "axis " + std::to_string(*repeated) + " is repeated");
  return known_on_host(node, 1);
}

void emit_arg_reduce(Emit& e, std::string_view better) {
  const Tensor x = e.input(0);
  const size_t axis = axis_of(e.node.int_attribute("axis", 0), x.rank());
  Shape shape = x.shape;
  shape[axis] = 1;
  if (e.node.int_attribute("keepdims", 1) == 0) shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  if (x.shape[axis] == 0) throw sdk::Error(BP_INVALID_MODEL, "input 0 has extent 0 along axis " + std::to_string(axis));
  const Rows rows = rows_of(e.caps(), x.shape, axis, axis + 1);
  const bool last = e.node.int_attribute("select_last_index", 0) != 0;
  const Tensor y = e.output(0, shape);
  // On a CPU, a work item compares as many elements at a time as a cache line has floats.
  constexpr int64_t kWide = 16;
  const bool cpu = e.caps().kind == BP_DEVICE_CPU, across = cpu && rows.inner >= kWide;
  const bool apart = cpu && rows.inner == 1 && rows.n >= kWide;
  const int64_t items = across ? rows.outer * ((rows.inner + kWide - 1) / kWide) : rows.count();
  e.launch("arg_reduce", "arg_reduce",
           "-DTYPE=" + Emit::type(x) + " -DWIDE=" + std::to_string(across || apart ? kWide : 1) +
               (across ? " -DACROSS" : "") + (last ? " -DLAST" : ""),
           "#define BETTER " + std::string(better) + "\n")
      .in(x)
      .out(y)
      .arg(items)
      .arg(rows.n)
      .arg(rows.inner)
      .range(items);
}

Verdict supports_arg_reduce(const Node& node) {
  return expect(node).output_dtype(0, one(BP_DTYPE_INT64)).rank(0, 1);
}

void emit_cumulative(Emit& e, std::string_view join) {
  const Tensor x = e.input(0);
  const size_t axis = axis_of(e.ints(1).at(0), x.rank());
  const Rows rows = rows_of(e.caps(), x.shape, axis, axis + 1);
  const auto flag = [&](const char* name, const char* macro) {
    return e.node.int_attribute(name, 0) != 0 ? macro : "";
  };
  const Tensor y = e.output(0, x.shape);
  e.launch("cumulative", "cumulative",
           "-DTYPE=" + Emit::type(x) + " -DFIRST=" + (join == "+" ? "0" : "1") + flag("reverse", " -DREVERSE") +
               flag("exclusive", " -DEXCLUSIVE"),
           "#define JOIN " + std::string(join) + "\n")
      .in(x)
      .out(y)
      .arg(rows.count())
      .arg(rows.n)
      .arg(rows.inner)
      .range(rows.count());
}

constexpr bp_dtype_set_t kWideNumbers =
    kFloats | one(BP_DTYPE_INT32) | one(BP_DTYPE_INT64) | one(BP_DTYPE_UINT32) | one(BP_DTYPE_UINT64);
constexpr Form kReducing{1, 2};

}  // namespace

std::span<const Row> reduce_rows() {
  static constexpr Row kRows[] = {
      {"", "ReduceSum", 13, kWideNumbers, kReducing, supports_reduce, emit_reduce, "sum"},
      {"", "ReduceMean", 11, kFloats, kReducing, supports_reduce, emit_reduce, "mean"},
      {"", "ReduceL1", 11, kWideNumbers, kReducing, supports_reduce, emit_reduce, "l1"},
      {"", "ReduceL2", 11, kFloats, kReducing, supports_reduce, emit_reduce, "l2"},
      {"", "ReduceSumSquare", 11, kWideNumbers, kReducing, supports_reduce, emit_reduce, "squares"},
      {"", "ReduceLogSum", 11, kFloats, kReducing, supports_reduce, emit_reduce, "log"},
      {"", "ReduceLogSumExp", 11, kFloats, kReducing, supports_reduce, emit_reduce, "logexp"},
      {"", "ReduceProd", 11, kWideNumbers, kReducing, supports_reduce, emit_reduce, "product"},
      {"", "ReduceMax", 11, kAnything, kReducing, supports_reduce, emit_reduce, "max"},
      {"", "ReduceMin", 11, kAnything, kReducing, supports_reduce, emit_reduce, "min"},
      {"", "ArgMax", 11, kNumbers, kUnaryOpen, supports_arg_reduce, emit_arg_reduce, ">"},
      {"", "ArgMin", 11, kNumbers, kUnaryOpen, supports_arg_reduce, emit_arg_reduce, "<"},
      {"", "CumSum", 11, kWideNumbers, kBinary, supports_reduce, emit_cumulative, "+"},
      {"", "CumProd", 26, kWideNumbers, kBinary, supports_reduce, emit_cumulative, "*"},
  };
  return kRows;
}

}  // namespace backplane::gpu

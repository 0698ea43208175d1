// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

Status drop_axes(Context& c, const std::vector<int64_t>& axes, bool keep) {
  Shape shape = c.shape(0), result;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!reduced) result.push_back(shape[i]);
    if (reduced && keep) result.push_back(1);
  }
  return c.set_shape(0, result);
}

Status reduce(Context& c) {
  bool keep = c.integer("keepdims") != 0;
  std::vector<int64_t> axes;
  bool all = false;
  if (c.has(1)) {
    auto given = c.numbers(1);
    if (!given && c.length(1) != std::optional<int64_t>(0)) {
      if (!c.ranked(0)) return {};
      if (keep) return c.set_rank(0, c.rank(0));
      auto count = c.length(1);
      return count && *count <= c.rank(0) ? c.set_rank(0, c.rank(0) - *count) : Status();
    }
    if (given && c.ranked(0)) BP_TRY(c.axes(*given, c.rank(0), axes));
    all = !given || given->empty();
  } else {
    all = true;
  }
  if (all && c.integer("noop_with_empty_axes") != 0) return same_shape(c);
  if (!c.ranked(0)) return all && !keep ? c.set_shape(0, {}) : Status();
  for (int64_t i = 0; all && i < c.rank(0); ++i) axes.push_back(i);
  return drop_axes(c, axes, keep);
}

// Shape arithmetic: combines the known elements of a vector into one.
template <Scalar (Expressions::*kCombine)(const Scalar&, const Scalar&)>
Status reduce_known_data(Context& c) {
  BP_TRY(reduce(c));
  const KnownData* x = c.elements(0);
  const model::Type& result = c.output(0);
  bool one = result.rank == 0 || (result.rank == 1 && result.dims[0].extent == 1);
  if (!x || x->empty() || !one || c.input(0).dtype == BP_DTYPE_FLOAT || c.input(0).dtype == BP_DTYPE_DOUBLE) return {};
  if (c.rank(0) == 1 && c.has(1) && !c.numbers(1)) return {};
  Scalar sum = (*x)[0];
  for (size_t i = 1; i < x->size(); ++i) sum = (c.math().*kCombine)(sum, (*x)[i]);
  c.set_known_data(0, {sum});
  return {};
}

Status arg_extreme(Context& c) {
  if (!c.ranked(0)) return {};
  int64_t axis;
  BP_TRY(c.axis(c.integer("axis"), c.rank(0), axis));
  return drop_axes(c, {axis}, c.integer("keepdims") != 0);
}

}  // namespace

std::span<const RuleRow> reduction_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "ArgMax", arg_extreme},
      {"", "ArgMin", arg_extreme},
      {"", "ReduceL1", reduce},
      {"", "ReduceL2", reduce},
      {"", "ReduceLogSum", reduce},
      {"", "ReduceLogSumExp", reduce},
      {"", "ReduceMax", reduce_known_data<&Expressions::max>},
      {"", "ReduceMean", reduce},
      {"", "ReduceMin", reduce_known_data<&Expressions::min>},
      {"", "ReduceProd", reduce_known_data<&Expressions::multiply>},
      {"", "ReduceSum", reduce_known_data<&Expressions::add>},
      {"", "ReduceSumSquare", reduce},
  };
  return kRows;
}

}  // namespace backplane::ops

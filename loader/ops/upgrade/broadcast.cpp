// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "ir/tensor.h"
#include "ops/upgrade/upgrades.h"

namespace backplane::ops {
namespace {

// Appends dimensions of extent 1 to `b`, so that broadcasting (which aligns last dimensions) aligns the first dimension
// of `b` with dimension `axis` of `a`.
ValueId align(Rewrite& r, ValueId a, ValueId b, int64_t axis) {
  const int64_t rank_a = r.rank(a), rank_b = r.rank(b);
  if (rank_b >= 0 && (axis < 0 || rank_a >= 0)) {
    const int64_t end = axis < 0 ? -axis : rank_a - axis;
    std::vector<int64_t> axes(static_cast<size_t>(std::max<int64_t>(end - rank_b, 0)));
    std::iota(axes.begin(), axes.end(), rank_b);
    return r.unsqueeze(b, axes);
  }
  const ValueId end = axis < 0 ? r.scalar(-axis) : r.emit("Sub", {r.rank_of(a), r.scalar(axis)});
  return r.emit("Unsqueeze", {b, r.emit("Range", {r.rank_of(b), end, r.scalar(1)})});
}

}  // namespace

Status numpy_broadcast(Rewrite& r) {
  if (r.node.attr("broadcast", int64_t{0}) != 0 && r.node.find("axis")) {
    const int64_t axis = r.node.attr("axis", int64_t{0});
    if (axis < -BP_MAX_RANK || axis >= BP_MAX_RANK)
      return r.invalid("axis " + std::to_string(axis) + " is outside of any rank; the maximum rank is " +
                       std::to_string(BP_MAX_RANK));
    r.set_input(1, align(r, r.node.inputs[0], r.node.inputs[1], axis));
  }
  r.node.erase("broadcast");
  r.node.erase("axis");
  return {};
}

// The first dimension of the slope used to be aligned with dimension 1 of X. Now its last dimension is aligned with the
// last one of X.
Status prelu_broadcast(Rewrite& r) {
  const ValueId slope = r.node.inputs[1];
  const model::Weight* weight = r.graph.weight_of(slope);
  if (r.rank(slope) == 0 || (weight && model::element_count(weight->dims) == 1)) return {};
  r.set_input(1, align(r, r.node.inputs[0], slope, 1));
  return {};
}

}  // namespace backplane::ops

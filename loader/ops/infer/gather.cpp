// SPDX-License-Identifier: Apache-2.0
// Operators that gather or scatter elements by index, and operators that sort.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

Status gather(Context& c) {
  if (!c.ranked(0) || !c.ranked(1)) return {};
  int64_t axis;
  BP_TRY(c.axis(c.integer("axis"), c.rank(0), axis));
  Shape shape = c.shape(0), indices = c.shape(1);
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.begin(), indices.end());
  BP_TRY(c.set_shape(0, shape));
  const KnownData* x = c.elements(0);
  const KnownData* picks = c.elements(1);
  if (!x || !picks || c.rank(0) != 1) return {};
  KnownData result;
  for (const Scalar& pick : *picks) {
    int64_t size = static_cast<int64_t>(x->size());
    bool inside = pick.is_number() && pick.value >= -size && pick.value < size;
    result.push_back(inside ? (*x)[pick.value < 0 ? pick.value + size : pick.value] : Scalar());
  }
  c.set_known_data(0, std::move(result));
  return {};
}

Status gather_elements(Context& c) {
  if (c.ranked(0) && c.ranked(1) && c.rank(0) != c.rank(1)) {
    return c.fail("data has rank " + std::to_string(c.rank(0)) + " and indices " + std::to_string(c.rank(1)) +
                  ": the ranks must be equal");
  }
  if (c.ranked(0)) {
    int64_t axis;
    BP_TRY(c.axis(c.integer("axis"), c.rank(0), axis));
  }
  c.copy_shape(0, 1);
  return {};
}

// The last extent of `indices` is the number of data axes that an index tuple addresses, after the batch axes.
Status gather_nd(Context& c) {
  BP_TRY(c.expect_rank(0, 1, BP_MAX_RANK));
  BP_TRY(c.expect_rank(1, 1, BP_MAX_RANK));
  if (!c.ranked(0) || !c.ranked(1)) return {};
  int64_t batch = c.integer("batch_dims");
  Shape data = c.shape(0), indices = c.shape(1);
  if (batch < 0 || batch >= std::min(c.rank(0), c.rank(1))) {
    return c.fail("batch_dims is " + std::to_string(batch) + ", but it must be at least 0 and below the ranks " +
                  std::to_string(c.rank(0)) + " and " + std::to_string(c.rank(1)));
  }
  Scalar depth = indices.back();
  if (!depth.is_number()) return {};
  if (depth.value < 1 || depth.value > c.rank(0) - batch) {
    return c.fail("indices hold tuples of " + std::to_string(depth.value) + " elements, but data of rank " +
                  std::to_string(c.rank(0)) + " with batch_dims " + std::to_string(batch) + " needs 1 to " +
                  std::to_string(c.rank(0) - batch));
  }
  Shape shape(indices.begin(), indices.end() - 1);
  for (int64_t i = 0; i < batch; ++i) BP_TRY(c.merge(data[i], indices[i], shape[i], "batch extents"));
  shape.insert(shape.end(), data.begin() + batch + depth.value, data.end());
  return c.set_shape(0, shape);
}

Status scatter(Context& c) {
  if (c.ranked(0) && !c.integers("axis").empty()) {
    int64_t axis;
    BP_TRY(c.axis(c.integer("axis"), c.rank(0), axis));
  }
  return same_shape(c);
}

Status top_k(Context& c) {
  if (!c.ranked(0)) return {};
  int64_t axis;
  BP_TRY(c.axis(c.integer("axis"), c.rank(0), axis));
  Shape shape = c.shape(0);
  const KnownData* k = c.known_data(1);
  Scalar count = k && k->size() == 1 ? (*k)[0] : Scalar();
  if (count.is_number() && shape[axis].is_number() && (count.value < 0 || count.value > shape[axis].value)) {
    return c.fail("K is " + std::to_string(count.value) + ", but axis " + std::to_string(axis) + " has extent " +
                  std::to_string(shape[axis].value));
  }
  shape[axis] = count;
  BP_TRY(c.set_shape(0, shape));
  return c.set_shape(1, shape);
}

// Outputs: Y; for each entry of Y the index of its first occurrence; for each input entry its index in Y; the counts.
Status unique(Context& c) {
  Scalar distinct, given;
  if (c.has_attribute("axis")) {
    if (c.ranked(0)) {
      int64_t axis;
      BP_TRY(c.axis(c.integer("axis"), c.rank(0), axis));
      Shape shape = c.shape(0);
      given = std::exchange(shape[axis], distinct);
      BP_TRY(c.set_shape(0, shape));
    }
  } else {
    BP_TRY(c.set_shape(0, {distinct}));
    if (c.ranked(0)) given = c.math().product(c.shape(0));
  }
  BP_TRY(c.set_shape(1, {distinct}));
  BP_TRY(c.set_shape(2, {given}));
  return c.set_shape(3, {distinct});
}

Status non_zero(Context& c) {
  return c.set_shape(0, {c.ranked(0) ? Scalar(std::max<int64_t>(c.rank(0), 1)) : Scalar(), Scalar()});
}

Status one_hot(Context& c) {
  if (!c.ranked(0)) return {};
  int64_t axis;
  BP_TRY(c.axis(c.integer("axis"), c.rank(0) + 1, axis));
  const KnownData* depth = c.known_data(1);
  Scalar extent = depth && depth->size() == 1 ? (*depth)[0] : Scalar();
  if (extent.kind == Scalar::kReal) {
    extent = std::abs(extent.real_value) < 1e15 ? Scalar(static_cast<int64_t>(extent.real_value)) : Scalar();
  }
  Shape shape = c.shape(0);
  shape.insert(shape.begin() + axis, extent);
  return c.set_shape(0, shape);
}

}  // namespace

std::span<const RuleRow> gather_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "Gather", gather},        {"", "GatherElements", gather_elements},
      {"", "GatherND", gather_nd},   {"", "NonZero", non_zero},
      {"", "OneHot", one_hot},       {"", "ScatterElements", scatter},
      {"", "ScatterND", same_shape}, {"", "TensorScatter", scatter},
      {"", "TopK", top_k},           {"", "Unique", unique},
  };
  return kRows;
}

}  // namespace backplane::ops

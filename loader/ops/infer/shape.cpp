// SPDX-License-Identifier: Apache-2.0
// Operators that read or change shapes: Shape, Size, Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile.
#include <algorithm>

#include "base/counted.h"
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

Status shape_of(Context& c) {
  if (!c.ranked(0)) {
    return c.set_rank(0, 1);
  }
  Shape shape = c.shape(0);
  int64_t rank = static_cast<int64_t>(shape.size());
  auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at < 0 && at >= -rank ? at + rank : at, 0, rank); };
  int64_t first = clamped(c.integer("start"));
  int64_t last = c.has_attribute("end") ? clamped(c.integer("end")) : rank;
  KnownData part(shape.begin() + first, shape.begin() + std::max(first, last));
  BP_TRY(c.set_shape(0, {static_cast<int64_t>(part.size())}));
  c.set_known_data(0, std::move(part));
  return {};
}

Status size_of(Context& c) {
  BP_TRY(c.set_shape(0, {}));
  if (c.ranked(0)) c.set_known_data(0, {c.math().product(c.shape(0))});
  return {};
}

void same_known_data(Context& c) {
  if (const KnownData* x = c.elements(0)) c.set_known_data(0, *x);
}

Status reshape(Context& c) {
  BP_TRY(c.expect_rank(1, 1, 1));
  const KnownData* wanted = c.known_data(1);
  if (!wanted) {
    if (auto rank = c.length(1)) return c.set_rank(0, *rank);
    return {};
  }
  Expressions& m = c.math();
  bool keep_zero = c.integer("allowzero") != 0;
  Shape shape(*wanted);
  size_t open = shape.size();  // the index of the -1; shape.size(): there is none
  bool certain = true;
  for (size_t i = 0; i < shape.size(); ++i) {
    Scalar& extent = shape[i];
    if (extent.is(-1)) {
      if (open != shape.size()) return c.fail("requests shape " + c.describe(*wanted) + ": only one extent may be -1");
      open = i;
      continue;
    }
    if (extent.is(0) && !keep_zero) {
      if (c.ranked(0) && static_cast<int64_t>(i) >= c.rank(0)) {
        return c.fail("requests shape " + c.describe(*wanted) + ": 0 copies an extent, but the input has rank " +
                      std::to_string(c.rank(0)));
      }
      extent = c.dim(0, static_cast<int64_t>(i));
    } else if (!extent.is_number() && m.lower(extent) < 0) {
      certain = false;  // the extent may turn out to be -1 at run time
      extent = {};
    } else if (extent.is_number() && extent.value < 0) {
      return c.fail("requests shape " + c.describe(*wanted) + ": extents must be >= 0, except a single -1");
    }
    if (extent.kind == Scalar::kUnknown) certain = false;
  }
  Scalar total = c.ranked(0) ? m.product(c.shape(0)) : Scalar();
  if (open != shape.size()) {
    Shape others(shape);
    others[open] = 1;
    Scalar rest = m.product(others);
    Scalar quotient = rest.is(0) ? Scalar() : m.floor_divide(total, rest);
    bool whole = m.multiply(quotient, rest).same(total);
    if (total.is_number() && rest.is_number() && !whole && rest.value != 0) {
      return c.fail("cannot make shape " + c.describe(*wanted) + " of " + c.describe(c.shape(0)) + ": " +
                    std::to_string(total.value) + " elements are not a multiple of " + std::to_string(rest.value));
    }
    shape[open] = quotient;
  } else if (certain) {
    Scalar made = m.product(shape);
    if (made.is_number() && total.is_number() && made.value != total.value) {
      return c.fail("cannot make shape " + c.describe(*wanted) + " of " + c.describe(c.shape(0)) + ": " +
                    std::to_string(total.value) + " elements are not " + std::to_string(made.value));
    }
  }
  BP_TRY(c.set_shape(0, shape));
  same_known_data(c);
  return {};
}

Status flatten(Context& c) {
  if (!c.ranked(0)) {
    return c.set_rank(0, 2);
  }
  Shape shape = c.shape(0);
  int64_t rank = c.rank(0), axis = c.integer("axis");
  if (axis < -rank || axis > rank) {
    return c.fail("axis " + std::to_string(axis) + " is outside of rank " + std::to_string(rank));
  }
  auto cut = shape.begin() + (axis < 0 ? axis + rank : axis);
  return c.set_shape(0, {c.math().product(Shape(shape.begin(), cut)), c.math().product(Shape(cut, shape.end()))});
}

Status squeeze(Context& c) {
  same_known_data(c);
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0), result;
  std::vector<int64_t> axes;
  if (c.has(1)) {
    auto given = c.numbers(1);
    if (!given) {
      if (auto count = c.length(1); count && *count <= c.rank(0)) return c.set_rank(0, c.rank(0) - *count);
      return {};
    }
    BP_TRY(c.axes(*given, c.rank(0), axes));
  } else {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i].is(1)) axes.push_back(static_cast<int64_t>(i));
      if (!shape[i].is_number()) return {};  // the extent may turn out to be 1, and then the axis would be dropped
    }
  }
  for (int64_t axis : axes) {
    if (shape[axis].is_number() && !shape[axis].is(1)) {
      return c.fail("cannot drop axis " + std::to_string(axis) + " of shape " + c.describe(shape) +
                    ": its extent is not 1");
    }
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) result.push_back(shape[i]);
  }
  return c.set_shape(0, result);
}

Status unsqueeze(Context& c) {
  same_known_data(c);
  if (!c.ranked(0)) return {};
  auto given = c.numbers(1);
  const auto count = given ? std::optional(static_cast<int64_t>(given->size())) : c.length(1);
  if (!count) return {};
  if (*count > BP_MAX_RANK) return c.set_rank(0, *count);  // fails
  int64_t rank = c.rank(0) + *count;
  if (!given) return c.set_rank(0, rank);
  std::vector<int64_t> axes;
  BP_TRY(c.axes(*given, rank, axes));
  Shape shape = c.shape(0);
  std::sort(axes.begin(), axes.end());
  for (int64_t axis : axes) shape.insert(shape.begin() + axis, Scalar(1));
  return c.set_shape(0, shape);
}

Status expand(Context& c) {
  BP_TRY(c.expect_rank(1, 1, 1));
  const KnownData* wanted = c.known_data(1);
  if (!c.ranked(0)) return {};
  Shape shape;
  if (!wanted) {
    const auto rank = c.length(1);
    if (!rank) return {};
    if (*rank > BP_MAX_RANK) return c.set_rank(0, *rank);  // fails
    BP_TRY(c.broadcast(c.shape(0), Shape(*rank), shape));
    return c.set_shape(0, shape);
  }
  BP_TRY(c.broadcast(c.shape(0), *wanted, shape));
  BP_TRY(c.set_shape(0, shape));
  Scalar count = c.math().product(shape);
  const KnownData* x = c.elements(0);
  if (x && x->size() == 1 && count.is_number() && count.value >= 0 &&
      count.value <= static_cast<int64_t>(kMaxKnownData)) {
    c.set_known_data(0, KnownData(count.value, (*x)[0]));
  } else if (x && count.is(static_cast<int64_t>(x->size()))) {
    same_known_data(c);
  }
  return {};
}

Status tile(Context& c) {
  BP_TRY(c.expect_rank(1, 1, 1));
  if (!c.ranked(0)) return {};
  auto count = c.length(1);
  if (count && *count != c.rank(0)) {
    return c.fail("repeats has " + counted(*count, "entry", "entries") + ", but the input has rank " +
                  std::to_string(c.rank(0)));
  }
  const KnownData* repeats = c.known_data(1);
  Shape shape = c.shape(0);
  for (size_t i = 0; i < shape.size(); ++i) {
    shape[i] = repeats && i < repeats->size() ? c.math().multiply(shape[i], (*repeats)[i]) : Scalar();
  }
  return c.set_shape(0, shape);
}

}  // namespace

std::span<const RuleRow> shape_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "Expand", expand}, {"", "Flatten", flatten}, {"", "Reshape", reshape}, {"", "Shape", shape_of},
      {"", "Size", size_of},  {"", "Squeeze", squeeze}, {"", "Tile", tile},       {"", "Unsqueeze", unsqueeze},
  };
  return kRows;
}

}  // namespace backplane::ops

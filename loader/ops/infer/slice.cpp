// SPDX-License-Identifier: Apache-2.0
// Operators that cut or join along axes: Slice, Split, Concat, Pad, CenterCropPad, Compress.
#include <algorithm>

#include "base/counted.h"
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

// Exporters write this or a larger number for "to the end". Symbols are assumed to stay below it.
constexpr int64_t kFar = INT32_MAX;

// The start or end of a slice on an axis, clamped to the axis. `backwards` means that the step is negative.
Scalar bound(Expressions& m, const Scalar& position, const Scalar& extent, bool backwards) {
  if (position.kind == Scalar::kUnknown) return {};
  if (m.lower(position) >= 0) return m.min(position, backwards ? m.subtract(extent, 1) : extent);
  Scalar front = backwards ? Scalar(-1) : Scalar(0);
  if (m.upper(position) <= -kFar && m.upper(extent) < kFar) return front;
  return m.upper(position) < 0 ? m.max(m.add(position, extent), front) : Scalar();
}

// The start of a slice, clamped. With a negative step, the start is an element of the axis unless the axis is empty.
Scalar beginning(Expressions& m, const Scalar& start, const Scalar& extent, bool backwards) {
  Scalar first = bound(m, start, extent, backwards);
  if (!backwards || first.kind == Scalar::kUnknown || m.lower(first) >= 0) return first;
  return m.min(m.max(first, 0), m.subtract(extent, 1));
}

// The number of elements of a slice; unknown if it cannot be inferred.
Scalar slice_extent(Expressions& m, const Scalar& extent, const Scalar& start, const Scalar& end, const Scalar& step) {
  if (!step.is_number() || step.is(0) || step.is(INT64_MIN)) return {};
  bool backwards = step.value < 0;
  bool whole =
      backwards ? (start.is_number() && (start.value >= kFar || start.is(-1))) && end.is_number() && end.value <= -kFar
                : start.is(0) && end.is_number() && end.value >= kFar;
  if (whole && !extent.is_number()) return m.ceil_divide(extent, backwards ? -step.value : step.value);
  if (!backwards && end.is_number() && end.value >= kFar && !extent.is_number()) {
    Scalar length = m.lower(start) >= 0 ? m.subtract(extent, start)
                    : start.is_number() ? m.min(extent, m.multiply(start, -1))
                                        : Scalar();
    return m.max(m.ceil_divide(length, step), 0);
  }
  Scalar first = beginning(m, start, extent, backwards);
  Scalar last = bound(m, end, extent, backwards);
  Scalar length = backwards ? m.subtract(first, last) : m.subtract(last, first);
  return m.max(m.ceil_divide(length, backwards ? -step.value : step.value), 0);
}

// Sets the known elements of a one-dimensional slice whose start and end are known.
void slice_known_data(Context& c, const KnownData& starts, const KnownData& ends, int64_t step) {
  const KnownData* x = c.elements(0);
  if (!x || !starts[0].is_number() || !ends[0].is_number() || step == 0 || step == INT64_MIN) return;
  Expressions& m = c.math();
  int64_t size = static_cast<int64_t>(x->size());
  Scalar first = beginning(m, starts[0], size, step < 0), last = bound(m, ends[0], size, step < 0);
  if (!first.is_number() || !last.is_number()) return;
  KnownData part;
  for (int64_t i = first.value; step > 0 ? i < last.value : i > last.value;) {
    part.push_back((*x)[i]);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  c.set_known_data(0, std::move(part));
}

Status slice(Context& c) {
  for (size_t slot = 1; slot <= 4; ++slot) BP_TRY(c.expect_rank(slot, 1, 1));
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0);
  int64_t rank = c.rank(0);
  auto count = c.length(1);
  for (size_t slot = 2; slot <= 4; ++slot) {
    if (auto other = c.length(slot); c.has(slot) && count && other && *other != *count) {
      return c.fail("starts has " + std::to_string(*count) + " entries, but input " + std::to_string(slot) + " has " +
                    std::to_string(*other));
    }
  }
  std::vector<int64_t> axes;
  bool axes_known = count.has_value();
  if (c.has(3)) {
    auto given = c.numbers(3);
    axes_known = axes_known && given.has_value() && static_cast<int64_t>(given->size()) == *count;
    if (axes_known) BP_TRY(c.axes(*given, rank, axes));
  } else if (axes_known) {
    if (*count > rank)
      return c.fail("starts has " + std::to_string(*count) + " entries, but the data has rank " + std::to_string(rank));
    for (int64_t i = 0; i < *count; ++i) axes.push_back(i);
  }
  if (!axes_known) return c.set_rank(0, rank);
  KnownData unknown(axes.size()), ones(axes.size(), Scalar(1));
  auto entries = [&](size_t slot, const KnownData& otherwise) -> const KnownData& {
    const KnownData* found = c.known_data(slot);
    return found && found->size() == axes.size()
               ? *found
               : otherwise;  // NOLINT(bugprone-return-const-ref-from-parameter): callers pass local variables
  };
  const KnownData& starts = entries(1, unknown);
  const KnownData& ends = entries(2, unknown);
  const KnownData& steps = entries(4, c.has(4) ? unknown : ones);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i].is(0)) return c.fail("has step 0 for axis " + std::to_string(axes[i]) + ": steps cannot be 0");
    shape[axes[i]] = slice_extent(c.math(), shape[axes[i]], starts[i], ends[i], steps[i]);
  }
  BP_TRY(c.set_shape(0, shape));
  if (rank == 1 && axes.size() == 1 && steps[0].is_number()) slice_known_data(c, starts, ends, steps[0].value);
  return {};
}

Status split(Context& c) {
  int64_t pieces = static_cast<int64_t>(c.outputs());
  if (!c.ranked(0)) return {};
  int64_t axis;
  BP_TRY(c.axis(c.integer("axis"), c.rank(0), axis));
  Expressions& m = c.math();
  Shape shape = c.shape(0);
  Scalar extent = shape[axis];
  const KnownData* sizes = c.has(1) ? c.known_data(1) : nullptr;
  if (auto count = c.length(1); c.has(1) && count && *count != pieces) {
    return c.fail("split has " + counted(*count, "entry", "entries") + ", but the node has " +
                  counted(pieces, "output"));
  }
  if (c.has_attribute("num_outputs") && c.integer("num_outputs") != pieces) {
    return c.fail("num_outputs is " + std::to_string(c.integer("num_outputs")) + ", but there are " +
                  std::to_string(pieces) + " outputs");
  }
  Scalar each = m.ceil_divide(extent, pieces);
  Scalar sum = 0;
  for (int64_t i = 0; i < pieces; ++i) {
    if (c.has(1)) {
      shape[axis] = sizes && static_cast<size_t>(i) < sizes->size() ? (*sizes)[i] : Scalar();
    } else {
      Scalar left = m.subtract(extent, sum);  // the last piece is smaller if `pieces` does not divide the extent
      shape[axis] = i + 1 == pieces || extent.is_number() ? left : each;
      if (left.is_number()) shape[axis] = std::min(left.value, each.value);
    }
    sum = m.add(sum, shape[axis]);
    BP_TRY(c.set_shape(i, shape));
  }
  if (c.has(1) && sum.is_number() && extent.is_number() && sum.value != extent.value) {
    return c.fail("split adds up to " + std::to_string(sum.value) + ", but axis " + std::to_string(axis) +
                  " has extent " + std::to_string(extent.value));
  }
  // If the elements are known, they are split too.
  if (const KnownData* x = c.elements(0); x && c.rank(0) == 1 && pieces > 0) {
    size_t from = 0;
    for (int64_t i = 0; i < pieces; ++i) {
      const model::Type& type = c.output(i);
      if (type.rank != 1 || type.dims[0].extent < 0 || from + type.dims[0].extent > x->size()) break;
      c.set_known_data(i, KnownData(x->begin() + from, x->begin() + from + type.dims[0].extent));
      from += type.dims[0].extent;
    }
  }
  return {};
}

Status concat(Context& c) {
  int64_t rank = -1;
  bool all_ranked = true;
  for (size_t slot = 0; slot < c.inputs(); ++slot) {
    if (!c.ranked(slot)) {
      all_ranked = false;
    } else if (rank >= 0 && c.rank(slot) != rank) {
      return c.fail("joins inputs of ranks " + std::to_string(rank) + " and " + std::to_string(c.rank(slot)) +
                    ": the ranks must be equal");
    } else {
      rank = c.rank(slot);
    }
  }
  if (rank < 0) return {};
  int64_t axis;
  BP_TRY(c.axis(c.integer("axis"), rank, axis));
  Shape shape(rank);
  shape[axis] = 0;
  KnownData known_data;
  bool any_known_data = false, followed = rank == 1;
  for (size_t slot = 0; slot < c.inputs(); ++slot) {
    for (int64_t i = 0; i < rank; ++i) {
      Scalar extent = c.dim(slot, i);
      if (i == axis) {
        shape[i] = c.math().add(shape[i], extent);
      } else {
        BP_TRY(c.merge(
            shape[i], extent, shape[i],
            "inputs differ in an axis other than that of the concatenation: extents of axis " + std::to_string(i)));
      }
    }
    if (!followed) continue;
    const KnownData* part = c.elements(slot);
    auto length = c.length(slot);
    any_known_data = any_known_data || part;
    const auto size = part ? static_cast<int64_t>(part->size()) : length;
    followed = followed && size && *size <= static_cast<int64_t>(kMaxKnownData - known_data.size());
    if (!followed) continue;
    if (part) {
      known_data.insert(known_data.end(), part->begin(), part->end());
    } else {
      known_data.resize(known_data.size() + static_cast<size_t>(*size));
    }
  }
  if (!all_ranked) shape[axis] = {};
  if (any_known_data && followed && all_ranked && shape[axis].is_number()) c.set_known_data(0, std::move(known_data));
  return c.set_shape(0, shape);
}

Status pad(Context& c) {
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0);
  std::vector<int64_t> axes;
  if (c.has(3)) {
    auto given = c.numbers(3);
    if (!given) return c.set_rank(0, c.rank(0));
    BP_TRY(c.axes(*given, c.rank(0), axes));
  } else {
    for (int64_t i = 0; i < c.rank(0); ++i) axes.push_back(i);
  }
  if (auto count = c.length(1); count && *count != static_cast<int64_t>(axes.size() * 2)) {
    return c.fail("pads has " + counted(*count, "entry", "entries") + ", but it must have " +
                  std::to_string(axes.size() * 2) + ", two for each axis");
  }
  const KnownData* pads = c.known_data(1);
  Expressions& m = c.math();
  for (size_t i = 0; i < axes.size(); ++i) {
    Scalar& extent = shape[axes[i]];
    extent =
        pads && pads->size() == axes.size() * 2 ? m.add(extent, m.add((*pads)[i], (*pads)[i + axes.size()])) : Scalar();
  }
  return c.set_shape(0, shape);
}

Status center_crop_pad(Context& c) {
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0);
  std::vector<int64_t> axes;
  if (c.has_attribute("axes")) {
    BP_TRY(c.axes(c.integers("axes"), c.rank(0), axes));
  } else {
    for (int64_t i = 0; i < c.rank(0); ++i) axes.push_back(i);
  }
  if (auto count = c.length(1); count && *count != static_cast<int64_t>(axes.size())) {
    return c.fail("shape has " + counted(*count, "entry", "entries") + " for " + counted(axes.size(), "axis", "axes"));
  }
  const KnownData* wanted = c.known_data(1);
  for (size_t i = 0; i < axes.size(); ++i) {
    shape[axes[i]] = wanted && i < wanted->size() ? (*wanted)[i] : Scalar();
  }
  return c.set_shape(0, shape);
}

Status compress(Context& c) {
  BP_TRY(c.expect_rank(1, 1, 1));
  const bool flat = !c.has_attribute("axis");
  if (!flat && !c.ranked(0)) return {};
  int64_t axis = 0;
  if (!flat) BP_TRY(c.axis(c.integer("axis"), c.rank(0), axis));
  Scalar extent, kept;
  if (c.ranked(0)) extent = flat ? c.math().product(c.shape(0)) : c.dim(0, axis);
  if (auto condition = c.numbers(1)) {
    // Entries beyond the extent select nothing.
    if (extent.is_number() && extent.value < std::ssize(*condition)) condition->resize(extent.value);
    kept = std::ssize(*condition) - std::count(condition->begin(), condition->end(), 0);
  }
  if (flat) return c.set_shape(0, {kept});
  Shape shape = c.shape(0);
  shape[axis] = kept;
  return c.set_shape(0, shape);
}

}  // namespace

std::span<const RuleRow> slice_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "CenterCropPad", center_crop_pad},
      {"", "Compress", compress},
      {"", "Concat", concat},
      {"", "Pad", pad},
      {"", "Slice", slice},
      {"", "Split", split},
  };
  return kRows;
}

}  // namespace backplane::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/extents.h"

#include <algorithm>

#include "backplane/sdk/coverage.hpp"
#include "engine/expression.h"

namespace backplane::gpu {

Shape reshaped(const Shape& from, Shape to, bool zero_is_zero) {
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] == 0 && !zero_is_zero) to[i] = from.at(i);
  const auto open = std::ranges::find(to, -1);
  if (open == to.end()) return to;
  *open = 1;
  const int64_t known = elements(to);
  *open = known != 0 ? elements(from) / known : -1;  // -1 is refused: any extent would do
  return to;
}

Shape squeezed(const Shape& from, const std::optional<std::vector<int64_t>>& axes) {
  const std::vector<bool> drop = axis_set(axes.value_or(std::vector<int64_t>{}), from.size());
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!(axes ? drop[i] : from[i] == 1)) shape.push_back(from[i]);
  }
  return shape;
}

Shape unsqueezed(const Shape& from, const std::vector<int64_t>& axes) {
  Shape shape;
  size_t next = 0;
  for (const bool added : axis_set(axes, from.size() + axes.size())) shape.push_back(added ? 1 : from[next++]);
  return shape;
}

SliceExtents sliced(const Shape& from, const std::vector<int64_t>& starts, const std::vector<int64_t>& ends,
                    const std::vector<int64_t>& axes, const std::vector<int64_t>& steps) {
  SliceExtents slice{from, dense_strides(from)};
  std::vector<bool> done(from.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t axis = axes.empty() ? i : axis_of(axes.at(i), from.size());
    if (done.at(axis)) throw sdk::Error(BP_INVALID_ARGUMENT, "axis " + std::to_string(axis) + " is repeated");
    done[axis] = true;
    const int64_t extent = from.at(axis), wanted = steps.empty() ? 1 : steps.at(i);
    if (wanted == 0) throw sdk::Error(BP_INVALID_ARGUMENT, "step " + std::to_string(i) + " is 0");
    if (extent == 0) continue;
    const int64_t step = std::clamp(wanted, -extent, extent);  // steps longer than the extent select one element too
    const auto within = [&](int64_t at, int64_t low, int64_t high) {
      return std::clamp(at < 0 ? at + extent : at, low, high);
    };
    const int64_t start = step > 0 ? within(starts[i], 0, extent) : within(starts[i], 0, extent - 1);
    const int64_t end =
        step > 0 ? within(ends.at(i), 0, extent) : within(std::max(ends.at(i), -extent - 1), -1, extent - 1);
    const int64_t distance = step > 0 ? end - start : start - end;
    slice.shape[axis] = distance <= 0 ? 0 : (distance + std::abs(step) - 1) / std::abs(step);
    slice.offset += start * slice.strides[axis];
    slice.strides[axis] *= step;
  }
  return slice;
}

}  // namespace backplane::gpu

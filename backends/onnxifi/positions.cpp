// SPDX-License-Identifier: Apache-2.0
#include "positions.h"

#include <algorithm>

namespace onnxifi_backend {
namespace {

using Ints = std::vector<int64_t>;

bool is_unsigned(bp_dtype_t dtype) {
  return dtype == BP_DTYPE_UINT8 || dtype == BP_DTYPE_UINT16 || dtype == BP_DTYPE_UINT32 || dtype == BP_DTYPE_UINT64;
}

bool is_any_negative(const Ints& values) {
  return std::any_of(values.begin(), values.end(), [](int64_t value) { return value < 0; });
}

// The dimension that element `i` of the bounds refers to.
size_t axis_of(const std::optional<Ints>& axes, size_t i, size_t rank) {
  return backplane::sdk::axis_of(axes ? axes->at(i) : static_cast<int64_t>(i), rank);
}

}  // namespace

std::string positive_indices(Rewrite& r) {
  const bool is_one_hot = r.node.op == "OneHot";
  const size_t slot = is_one_hot ? 0 : 1;
  if (is_unsigned(r.node.input(slot).value.dtype())) return {};
  auto indices = r.ints(slot);
  if (!indices)
    return r.refuse(
        "which has no negative indices: the indices must be constants, so that negative ones can be replaced");
  if (!is_any_negative(*indices)) return {};
  const Ints extents = is_one_hot ? r.node.outputs[0].value.extents() : r.extents(0);
  const int64_t extent = extents.at(static_cast<size_t>(r.node.number("axis", 0)));
  for (int64_t& index : *indices) {
    if (index < 0 && index >= -extent) index += extent;
  }
  r.set_ints(slot, *indices);
  return {};
}

std::string scatter_18(Rewrite& r) {
  const std::string how = r.node.text("reduction", "none");
  if (how == "max" || how == "min") return r.refuse("which has no reduction " + how);
  return {};
}

std::string scatter_elements_11(Rewrite& r) {
  r.node.op = "Scatter";
  return {};
}

std::string slice_13(Rewrite& r) {
  auto starts = r.ints(1), ends = r.ints(2);
  const auto axes = r.ints(3), steps = r.ints(4);
  if (!starts || !ends || (r.node.input(3) && !axes) || (r.node.input(4) && !steps)) return {};
  const Ints extents = r.extents(0);
  for (size_t i = 0; i < starts->size(); ++i) {
    const int64_t extent = extents[axis_of(axes, i, extents.size())];
    const int64_t first = !steps || steps->at(i) > 0 ? 0 : -1;  // the smallest `end`; -1 includes element 0
    int64_t &start = (*starts)[i], &end = ends->at(i);
    if (start < 0) start += extent;
    if (end < 0) end += extent;
    start = std::clamp<int64_t>(start, 0, std::max<int64_t>(extent + first, 0));
    end = std::clamp<int64_t>(end, first, extent + first);
    if (end < 0) end = -extent - 1;  // the position before the first element, counted from the end
  }
  r.set_ints(1, *starts);
  r.set_ints(2, *ends);
  return {};
}

std::string slice_11(Rewrite& r) {
  auto axes = r.ints(3);
  if (!r.node.input(3)) return {};
  if (!axes)
    return r.refuse("which has no negative axes: the axes must be constants, so that negative ones can be replaced");
  if (!is_any_negative(*axes)) return {};
  for (int64_t& axis : *axes)
    axis = static_cast<int64_t>(backplane::sdk::axis_of(axis, static_cast<size_t>(r.rank(0))));
  r.set_ints(3, *axes);
  return {};
}

}  // namespace onnxifi_backend

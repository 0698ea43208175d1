// SPDX-License-Identifier: Apache-2.0
// Operators that move elements or only change the shape. Transposed, sliced or repeated elements are usually not
// copied if their only reader is a formula of the same extents, as a formula can read strided views.
#include <algorithm>
#include <numeric>

#include "backplane/sdk/weights.hpp"
#include "ops/extents.h"
#include "ops/host_values.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

// ---- the same bytes ------------------------------------------------------------------------------------------------

void emit_reshape(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  e.alias(0, x, reshaped(x.shape, e.ints(1), e.node.int_attribute("allowzero", 0) != 0));
}

void emit_identity(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  e.alias(0, x, x.shape);
}

void emit_flatten(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  const int64_t axis = e.node.int_attribute("axis", 1);
  const size_t split = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.rank()) : axis);
  e.alias(0, x, {elements(x.shape, 0, split), elements(x.shape, split, x.rank())});
}

void emit_squeeze(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  e.alias(0, x, squeezed(x.shape, e.has_input(1) ? std::optional(e.ints(1)) : std::nullopt));
}

void emit_unsqueeze(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  e.alias(0, x, unsqueezed(x.shape, e.ints(1)));
}

Verdict shape_is_known(const Node& node) {
  return known_on_host(node, 1);
}

Verdict supports_flatten(const Node& node) {
  const int64_t axis = node.int_attribute("axis", 1), rank = node.input(0).rank();
  if (axis < -rank || axis > rank)
    return sdk::no(BP_REASON_ATTRIBUTE,
                   "axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  return accept();
}

// ---- elements from elsewhere ---------------------------------------------------------------------------------------

void emit_transpose(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  std::vector<int64_t> order = e.node.ints_attribute("perm");
  if (order.empty()) {
    for (size_t i = x.rank(); i-- > 0;) order.push_back(static_cast<int64_t>(i));
  }
  const std::vector<int64_t> dense = dense_strides(x.shape);
  Shape shape;
  View view{x, {}, 0};
  for (const int64_t axis : order) {
    const size_t from = axis_of(axis, x.rank());
    shape.push_back(x.shape[from]);
    view.strides.push_back(dense[from]);
  }
  e.moved(0, shape, view);
}

Verdict supports_transpose(const Node& node) {
  std::vector<int64_t> order = node.ints_attribute("perm");
  if (order.empty()) return accept();
  std::ranges::sort(order);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i))
      return sdk::no(BP_REASON_ATTRIBUTE, "perm " + to_string(node.ints_attribute("perm")) + " is not a permutation");
  }
  if (order.size() != static_cast<size_t>(node.input(0).rank()))
    return sdk::no(BP_REASON_ATTRIBUTE, "perm has " + std::to_string(order.size()) + " axes for rank " +
                                            std::to_string(node.input(0).rank()));
  return accept();
}

void emit_expand(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  const Shape shape = broadcast(x.shape, e.ints(1));
  e.moved(0, shape, broadcast_view(x, shape));
}

void emit_slice(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  SliceExtents slice = sliced(x.shape, e.ints(1), e.ints(2), e.ints(3), e.ints(4));
  e.moved(0, std::move(slice.shape), {x, std::move(slice.strides), slice.offset});
}

Verdict supports_slice(const Node& node) {
  for (const uint32_t slot : {1u, 2u, 3u, 4u}) {
    if (Verdict v = known_on_host(node, slot); !accepted(v)) return v;
  }
  for (const int64_t step : sdk::weight_ints(node.input(4)).value_or(std::vector<int64_t>{})) {
    if (step == 0) return sdk::no(BP_REASON_ATTRIBUTE, "steps contains 0");
  }
  return accept();
}

void emit_concat(Emit& e, std::string_view) {
  Shape shape = e.shape(0);
  const size_t axis = axis_of(e.node.int_attribute("axis", 0), shape.size());
  for (uint32_t i = 1; i < e.node.input_count(); ++i) {
    Shape fitting = shape;
    if (e.shape(i).size() == shape.size()) fitting[axis] = e.shape(i)[axis];
    if (e.shape(i) != fitting)
      throw sdk::Error(BP_TYPE_MISMATCH, "input " + std::to_string(i) + " has shape " + to_string(e.shape(i)) +
                                             " but input 0 has " + to_string(e.shape(0)));
    shape[axis] += fitting[axis];
  }
  const Tensor y = e.output(0, shape);
  View target{y, dense_strides(shape), 0};
  for (uint32_t i = 0; i < e.node.input_count(); ++i) {
    const Tensor x = e.input(i);
    e.move(x.shape, {x, dense_strides(x.shape), 0}, target);
    target.offset += x.shape[axis] * target.strides[axis];
  }
}

void emit_split(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  const size_t axis = axis_of(e.node.int_attribute("axis", 0), x.rank());
  std::vector<int64_t> sizes = e.ints(1);
  if (sizes.empty()) {
    const int64_t parts = e.node.int_attribute("num_outputs", e.node.output_count());
    const int64_t size = (x.shape[axis] + parts - 1) / parts;
    // The last parts may be smaller, or empty.
    for (int64_t left = x.shape[axis]; sizes.size() < static_cast<size_t>(parts); left -= sizes.back())
      sizes.push_back(std::min(size, left));
  }
  if (std::ranges::any_of(sizes, [](int64_t size) { return size < 0; }) ||
      std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != x.shape[axis])
    throw sdk::Error(BP_INVALID_ARGUMENT,
                     "parts " + to_string(sizes) + " do not add up to " + std::to_string(x.shape[axis]) + " elements");
  View view{x, dense_strides(x.shape), 0};
  for (uint32_t i = 0; i < e.node.output_count(); ++i) {
    Shape shape = x.shape;
    shape[axis] = sizes.at(i);
    if (e.has_output(i)) e.moved(i, shape, view);
    view.offset += shape[axis] * view.strides[axis];
  }
}

}  // namespace

std::span<const Row> movement_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Identity", 1, kAnything, kUnary, nullptr, emit_identity}.on_host({on_host::identity}),
      Row{"", "Reshape", 5, kAnything, kBinary, shape_is_known, emit_reshape}.on_host({on_host::reshape}),
      {"", "Flatten", 1, kAnything, kUnary, supports_flatten, emit_flatten},
      Row{"", "Squeeze", 13, kAnything, {1, 2}, shape_is_known, emit_squeeze}.on_host({on_host::squeeze}),
      Row{"", "Unsqueeze", 13, kAnything, kBinary, shape_is_known, emit_unsqueeze}.on_host({on_host::unsqueeze}),
      {"", "Transpose", 1, kAnything, kUnary, supports_transpose, emit_transpose},
      Row{"", "Expand", 8, kAnything, kBinary, shape_is_known, emit_expand}.on_host({on_host::expand}),
      Row{"", "Slice", 10, kAnything, {3, 5}, supports_slice, emit_slice}.on_host({on_host::slice}),
      Row{"", "Concat", 4, kAnything, kVariadic, same_types, emit_concat}.on_host({on_host::concat}),
      {"", "Split", 13, kAnything, {1, 2, Form::kSame, UINT32_MAX}, shape_is_known, emit_split},
  };
  return kRows;
}

}  // namespace backplane::gpu

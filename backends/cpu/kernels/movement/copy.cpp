// SPDX-License-Identifier: Apache-2.0
// Operators that are a single strided copy: each computes extents and strides, and StridedCopy copies.
#include "kernels/common/broadcast.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/strided_copy.h"
#include "kernels/common/support.h"
#include "kernels/movement/packed.h"

namespace backplane::cpu {
namespace {

Plan plan_copy(const Tensor& source, const Shape& result, std::span<const int64_t> extents,
               std::span<const int64_t> strides, int64_t offset = 0) {
  StridedCopy copy(extents, strides, offset, bytes_of(source.dtype, 1));
  const bool same = copy.is_plain() && result.elements() == source.shape.elements();
  return make_plan({result}, [copy = std::move(copy)](Tensors in, Tensors out) { copy(in[0].data, out[0].data); },
                   {.alias = same ? 0 : -1});
}

Verdict supports_one(const Node& node) {
  return accepts(node, 1, {kByteTypes});
}
Verdict supports_movable(const Node& node) {
  return accepts(node, 1, {kByteTypes | kPackedTypes});
}
Verdict supports_with_shape(const Node& node) {
  return accepts(node, 2, {kByteTypes, just(BP_DTYPE_INT64)});
}

std::unique_ptr<Kernel> create_transpose(const Node& node) {
  return make_kernel([perm = node.ints("perm")](Tensors inputs) -> Plan {
    const Shape& from = inputs[0].shape;
    std::vector<int64_t> order = perm;
    if (order.empty())
      for (int i = from.rank(); i-- > 0;) order.push_back(i);
    if (static_cast<int>(order.size()) != from.rank())
      return fail("perm has " + std::to_string(order.size()) + " entries for an input of shape " + to_string(from) +
                  "; it must have one for each dimension");
    if (!axis_set(order, from.rank()))
      return fail("perm " + to_string(Shape(order)) + " does not contain each dimension of an input of shape " +
                  to_string(from) + " once");
    const Shape dense = strides_of(from);
    Shape to, strides;
    for (int64_t d : order) {
      const int axis = static_cast<int>(d < 0 ? d + from.rank() : d);
      to.push_back(from[axis]);
      strides.push_back(dense[axis]);
    }
    return plan_copy(inputs[0], to, to.span(), strides.span());
  });
}

std::unique_ptr<Kernel> create_expand(const Node&) {
  return make_kernel([](Tensors inputs) -> Plan {
    if (!known(inputs[1])) return deferred();
    const std::vector<int64_t> wanted = integers(inputs[1]);
    if (wanted.size() > BP_MAX_RANK)
      return fail("the rank of the result, " + std::to_string(wanted.size()) + ", exceeds the maximum of 32");
    const Shape shapes[] = {inputs[0].shape, Shape(wanted)};
    for (int64_t extent : wanted)
      if (extent < 0) return fail("shape " + to_string(shapes[1]) + " has a negative extent");
    const auto to = broadcast_shape(shapes);
    if (!to) return fail("shape " + to_string(shapes[0]) + " cannot be expanded to " + to_string(shapes[1]));
    const Broadcast<1> walk(*to, {shapes[0]});
    return plan_copy(inputs[0], *to, walk.extents, walk.strides[0]);
  });
}

std::unique_ptr<Kernel> create_tile(const Node&) {
  return make_kernel([](Tensors inputs) -> Plan {
    if (!known(inputs[1])) return deferred();
    const Shape& from = inputs[0].shape;
    const std::vector<int64_t> repeats = integers(inputs[1]);
    if (static_cast<int>(repeats.size()) != from.rank())
      return fail(std::to_string(repeats.size()) + " repeats do not fit shape " + to_string(from));
    const Shape dense = strides_of(from);
    Shape to;
    std::vector<int64_t> extents, strides;  // each dimension becomes two: the repeats and the dimension
    for (int i = 0; i < from.rank(); ++i) {
      const int64_t repeat = repeats[static_cast<size_t>(i)];
      int64_t extent = 0;
      if (repeat < 0 || __builtin_mul_overflow(from[i], repeat, &extent))
        return fail("the repeat " + std::to_string(repeat) + " of axis " + std::to_string(i) + " of shape " +
                    to_string(from) + " is negative or too large");
      to.push_back(extent);
      extents.insert(extents.end(), {repeat, from[i]});
      strides.insert(strides.end(), {0, dense[i]});
    }
    if (!countable(to)) return fail("a result of extents " + to_string(to) + " is too large for memory");
    return plan_copy(inputs[0], to, extents, strides);
  });
}

// ---- Slice ---------------------------------------------------------------------------------------------------------

Verdict supports_slice(const Node& node) {
  return accepts(node, 3, {kByteTypes, kIndexTypes, kIndexTypes, kIndexTypes, kIndexTypes});
}

std::unique_ptr<Kernel> create_slice(const Node&) {
  return make_kernel([](Tensors inputs) -> Plan {
    for (const Tensor& input : inputs.subspan(1))
      if (input.present() && !known(input)) return deferred();
    const Shape& from = inputs[0].shape;
    const auto starts = integers(inputs[1]), ends = integers(inputs[2]);
    std::vector<int64_t> axes, steps(starts.size(), 1);
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    if (at(inputs, 3).present()) axes = integers(inputs[3]);
    if (at(inputs, 4).present()) steps = integers(inputs[4]);
    if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
      return fail("starts, ends, axes and steps have " + std::to_string(starts.size()) + ", " +
                  std::to_string(ends.size()) + ", " + std::to_string(axes.size()) + " and " +
                  std::to_string(steps.size()) + " elements; the numbers must be equal");
    if (!axis_set(axes, from.rank())) return fail(axes_error(axes, from.rank()));
    Shape to = from, strides = strides_of(from);
    int64_t offset = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int axis = axis_of(axes[i], from.rank());
      const int64_t extent = from[axis], step = std::clamp<int64_t>(steps[i], -INT32_MAX, INT32_MAX);
      if (step == 0) return fail("the step of axis " + std::to_string(axis) + " must not be 0");
      // Negative positions count from the end. All positions are then clamped to the range for the direction of the
      // step.
      const auto bounded = [&](int64_t position) {
        if (position < 0) position = position < -extent ? -1 : position + extent;
        return step > 0 ? std::clamp<int64_t>(position, 0, extent) : std::clamp<int64_t>(position, -1, extent - 1);
      };
      // A start before the first element is moved to it, even if the step is negative. (NumPy's result would then be
      // empty.)
      const int64_t start = extent > 0 ? std::max<int64_t>(bounded(starts[i]), 0) : bounded(starts[i]);
      const int64_t end = bounded(ends[i]);
      to[axis] = std::max<int64_t>(0, step > 0 ? (end - start + step - 1) / step : (end - start + step + 1) / step);
      offset += start * strides[axis];
      strides[axis] *= step;
    }
    return plan_copy(inputs[0], to, to.span(), strides.span(), to.elements() == 0 ? 0 : offset);
  });
}

// ---- DepthToSpace, SpaceToDepth: a transposition of six dimensions -------------------------------------------------

Verdict supports_blocks(const Node& node) {
  if (Verdict verdict = supports_one(node); !verdict) return verdict;
  if (const int64_t size = node.attr("blocksize", int64_t{0}); size < 1)
    return no(BP_REASON_ATTRIBUTE, "blocksize is " + std::to_string(size) + "; it must be positive");
  return attribute_in(node, "mode", "DCR", {"DCR", "CRD"});
}

// Views a tensor with the extents `split`, and permutes these dimensions by `order`.
Plan plan_permuted(const Tensor& source, const Shape& to, const Shape& split, std::span<const int> order) {
  const Shape dense = strides_of(split);
  Shape extents, strides;
  for (int d : order) {
    extents.push_back(split[d]);
    strides.push_back(dense[d]);
  }
  return plan_copy(source, to, extents.span(), strides.span());
}

std::unique_ptr<Kernel> create_depth_to_space(const Node& node) {
  return make_kernel(
      [b = node.attr("blocksize", int64_t{1}), crd = node.attr("mode", "DCR") == "CRD"](Tensors inputs) -> Plan {
        const Shape& s = inputs[0].shape;
        if (s.rank() != 4 || b > INT32_MAX || s[1] % (b * b) != 0)
          return fail("the input has shape " + to_string(s) +
                      "; it must be [N, C, H, W], with C a multiple of blocksize² = " + std::to_string(b) + "²");
        const int64_t depth = s[1] / (b * b);
        const Shape to{s[0], depth, s[2] * b, s[3] * b};
        static constexpr int kDcrOrder[] = {0, 3, 4, 1, 5, 2}, kCrdOrder[] = {0, 1, 4, 2, 5, 3};
        if (crd) return plan_permuted(inputs[0], to, {s[0], depth, b, b, s[2], s[3]}, kCrdOrder);
        return plan_permuted(inputs[0], to, {s[0], b, b, depth, s[2], s[3]}, kDcrOrder);
      });
}

std::unique_ptr<Kernel> create_space_to_depth(const Node& node) {
  return make_kernel(
      [b = node.attr("blocksize", int64_t{1}), crd = node.attr("mode", "DCR") == "CRD"](Tensors inputs) -> Plan {
        const Shape& s = inputs[0].shape;
        if (s.rank() != 4 || b > INT32_MAX || s[2] % b != 0 || s[3] % b != 0)
          return fail("the input has shape " + to_string(s) +
                      "; it must be [N, C, H, W], with H and W multiples of blocksize " + std::to_string(b));
        static constexpr int kDcrOrder[] = {0, 3, 5, 1, 2, 4}, kCrdOrder[] = {0, 1, 3, 5, 2, 4};
        return plan_permuted(inputs[0], {s[0], product({s[1], b, b}), s[2] / b, s[3] / b},
                             {s[0], s[1], s[2] / b, b, s[3] / b, b}, crd ? kCrdOrder : kDcrOrder);
      });
}

}  // namespace

[[gnu::cold]] std::span<const Row> copy_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Transpose", 1, supports_movable, create_unpacked<create_transpose>}.with(kMovesTexts),
      Row{"", "Expand", 8, supports_with_shape, create_expand}.with(kMovesTexts),
      Row{"", "Tile", 6, supports_with_shape, create_tile}.with(kMovesTexts),
      Row{"", "Slice", 10, supports_slice, create_slice}.with(kMovesTexts),
      Row{"", "DepthToSpace", 1, supports_blocks, create_depth_to_space}.with(kMovesTexts),
      Row{"", "SpaceToDepth", 1, supports_blocks, create_space_to_depth}.with(kMovesTexts),
  };
  return kRows;
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// Pad and CenterCropPad.
#include "kernels/common/function_kernel.h"
#include "kernels/common/mapped_copy.h"
#include "kernels/common/support.h"
#include "kernels/movement/packed.h"

namespace backplane::cpu {
namespace {

enum class Mode { kConstant, kReflect, kEdge, kWrap };

int64_t wrapped(int64_t i, int64_t n) {
  return (i % n + n) % n;
}

// Returns the position on an input axis of extent n from which output position `i` is copied, or -1 if it is filled
// with the constant. `i` is relative to the first input element, so it is negative in the padding before that.
int64_t source_of(int64_t i, int64_t n, Mode mode) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case Mode::kConstant:
      return -1;
    case Mode::kEdge:
      return i < 0 ? 0 : n - 1;
    case Mode::kWrap:
      return wrapped(i, n);
    case Mode::kReflect: {
      if (n == 1) return 0;
      const int64_t period = wrapped(i, 2 * (n - 1));
      return period < n ? period : 2 * (n - 1) - period;
    }
  }
  return -1;
}

// `before`, `after`: the number of elements added at each end of an axis; negative numbers remove elements, before
// others are added.
Plan plan_pad(const PlanContext& context, const Tensor& data, std::span<const int64_t> before,
              std::span<const int64_t> after, Mode mode, size_t fill_slot) {
  const Shape from = data.shape;
  Shape to = from;
  for (int d = 0; d < from.rank(); ++d) {
    const int64_t left = before[static_cast<size_t>(d)], right = after[static_cast<size_t>(d)];
    if (left > INT32_MAX || right > INT32_MAX || left < -INT32_MAX || right < -INT32_MAX)
      return fail("pads of " + std::to_string(left) + " and " + std::to_string(right) + " for axis " +
                  std::to_string(d) + " are not supported; they must be less than 2^31");
    to[d] = std::max<int64_t>(0, from[d] + left + right);
    if (from[d] + std::min<int64_t>(left, 0) + std::min<int64_t>(right, 0) <= 0 && to[d] > 0 && mode != Mode::kConstant)
      return fail("pads of " + std::to_string(left) + " and " + std::to_string(right) + " leave no element of axis " +
                  std::to_string(d) + " of shape " + to_string(from) +
                  " to copy from; only the mode 'constant' pads such an axis");
  }
  // Returns early if the result is too large, which is an error, or empty.
  if (Plan plain = make_plan({to}, [](Tensors, Tensors) {}); !plain.step || to.elements() == 0) return plain;
  std::vector<MappedCopy::Map> maps(static_cast<size_t>(from.rank()));
  for (int d = 0; d < from.rank(); ++d) {
    const int64_t left = before[static_cast<size_t>(d)], first = std::max<int64_t>(-left, 0);
    const int64_t rest = from[d] - first + std::min<int64_t>(after[static_cast<size_t>(d)], 0);
    if (left == 0 && to[d] == from[d]) continue;
    maps[static_cast<size_t>(d)] = {to[d], [first, rest, mode, begin = std::max<int64_t>(left, 0)](int64_t i) {
                                      const int64_t source = source_of(i - begin, rest, mode);
                                      return source < 0 ? source : first + source;
                                    }};
  }
  return make_plan({to}, [copy = MappedCopy(context, from, std::move(maps), bytes_of(data.dtype, 1)), fill_slot](
                             Tensors in, Tensors out) { copy(in[0].data, out[0].data, at(in, fill_slot).data); });
}

Verdict supports_pad(const Node& node) {
  constexpr bp_dtype_set_t kTypes = kByteTypes | kPackedTypes;
  if (Verdict verdict = accepts(node, 2, {kTypes, just(BP_DTYPE_INT64), kTypes, kIndexTypes}); !verdict) return verdict;
  if (node.has_input(2))
    if (Verdict verdict = same_type(node, 0, 2); !verdict) return verdict;
  return attribute_in(node, "mode", "constant", {"constant", "reflect", "edge", "wrap"});
}

std::unique_ptr<Kernel> create_pad(const Node& node) {
  const std::string name = node.attr("mode", "constant");
  const Mode mode = name == "reflect" ? Mode::kReflect
                    : name == "edge"  ? Mode::kEdge
                    : name == "wrap"  ? Mode::kWrap
                                      : Mode::kConstant;
  return make_kernel([mode](const PlanContext& context, Tensors inputs) -> Plan {
    const Tensor axes_input = at(inputs, 3);
    if (!known(inputs[1]) || (axes_input.present() && !known(axes_input))) return deferred();
    const int rank = inputs[0].shape.rank();
    const std::vector<int64_t> pads = integers(inputs[1]);
    std::vector<int64_t> axes;
    if (axes_input.present())
      axes = integers(axes_input);
    else
      for (int d = 0; d < rank; ++d) axes.push_back(d);
    if (!axis_set(axes, rank)) return fail(axes_error(axes, rank));
    if (pads.size() != 2 * axes.size())
      return fail("pads has " + std::to_string(pads.size()) + " elements for " + std::to_string(axes.size()) +
                  " axes of shape " + to_string(inputs[0].shape) + "; it must have two for each axis");
    if (const Tensor value = at(inputs, 2); value.present() && value.shape.elements() != 1)
      return fail("constant_value has shape " + to_string(value.shape) + "; it must have one element");
    std::vector<int64_t> before(static_cast<size_t>(rank)), after(before);
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto axis = static_cast<size_t>(axis_of(axes[i], rank));
      before[axis] = pads[i];
      after[axis] = pads[i + axes.size()];
    }
    return plan_pad(context, inputs[0], before, after, mode, 2);
  });
}

Verdict supports_center(const Node& node) {
  return accepts(node, 2, {kByteTypes, kIndexTypes});
}

std::unique_ptr<Kernel> create_center(const Node& node) {
  return make_kernel([axes_attribute = node.ints("axes")](const PlanContext& context, Tensors inputs) -> Plan {
    if (!known(inputs[1])) return deferred();
    const Shape& from = inputs[0].shape;
    const std::vector<int64_t> wanted = integers(inputs[1]);
    std::vector<int64_t> axes = axes_attribute;
    if (axes.empty())
      for (int d = 0; d < from.rank(); ++d) axes.push_back(d);
    if (!axis_set(axes, from.rank())) return fail(axes_error(axes, from.rank()));
    if (wanted.size() != axes.size())
      return fail("shape has " + std::to_string(wanted.size()) + " extents for " + std::to_string(axes.size()) +
                  " axes of an input of shape " + to_string(from) + "; it must have one for each axis");
    std::vector<int64_t> before(static_cast<size_t>(from.rank())), after(before);
    for (size_t i = 0; i < axes.size(); ++i) {
      const int axis = axis_of(axes[i], from.rank());
      if (wanted[i] < 0 || wanted[i] > INT32_MAX)
        return fail("shape contains the extent " + std::to_string(wanted[i]) + "; it must be 0 to 2^31 - 1");
      const int64_t more = wanted[i] - from[axis];
      before[static_cast<size_t>(axis)] = more / 2;  // if `more` is odd, the end gets the larger part
      after[static_cast<size_t>(axis)] = more - more / 2;
    }
    return plan_pad(context, inputs[0], before, after, Mode::kConstant, SIZE_MAX);
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> pad_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Pad", 11, supports_pad, create_unpacked<create_pad>}.with(kMovesTexts),
      Row{"", "CenterCropPad", 18, supports_center, create_center}.with(kMovesTexts),
  };
  return kRows;
}

}  // namespace backplane::cpu

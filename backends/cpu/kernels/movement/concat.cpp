// SPDX-License-Identifier: Apache-2.0
// Concat and Split: copy blocks of bytes between one tensor and several, whose extents differ in one axis only.
#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"

namespace backplane::cpu {
namespace {

// How one tensor, the whole, is divided into parts along an axis. The whole has `outer` rows of `row` bytes; part i has
// the `bytes[i]` bytes of each row at `offsets[i]`.
struct Parts {
  int64_t outer = 1, row = 0;
  std::vector<int64_t> offsets, bytes;

  Parts(const Shape& whole, int axis, std::span<const int64_t> extents, int64_t element_size)
      : outer(whole.elements(0, axis)) {
    const int64_t unit = whole.elements(axis + 1, whole.rank()) * element_size;
    for (int64_t extent : extents) {
      offsets.push_back(row);
      bytes.push_back(extent * unit);
      row += extent * unit;
    }
  }

  // Calls f(part, offset in the whole, offset in the part, bytes) for each non-empty block, in parallel.
  template <class F>
  void blocks(const F& f) const {
    const auto count = static_cast<int64_t>(bytes.size());
    const int64_t mean = std::max<int64_t>(1, row / std::max<int64_t>(1, count));
    parallel(outer * count, std::max<int64_t>(1, 4 * kCheapGrain / mean), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const auto part = static_cast<size_t>(task % count);
        const int64_t r = task / count;
        if (bytes[part] > 0) f(part, r * row + offsets[part], r * bytes[part], static_cast<size_t>(bytes[part]));
      }
    });
  }
};

Verdict supports_concat(const Node& node) {
  return accepts_variadic(node, kByteTypes);
}

// Whether an input is blocked, and the channels of all inputs can be concatenated without splitting their blocks.
bool stays_blocked(Tensors inputs) {
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    any = any || inputs[i].format == Format::kBlocked;
    if (!can_be_blocked(inputs[i].shape) || inputs[i].dtype != BP_DTYPE_FLOAT) return false;
    if (i + 1 < inputs.size() && inputs[i].shape[1] % channel_block() != 0) return false;
  }
  return any;
}

std::unique_ptr<Kernel> create_concat(const Node& node) {
  return make_kernel([axis_attribute = node.attr("axis", int64_t{0})](Tensors inputs) -> Plan {
    Shape to = inputs[0].shape;
    const int axis = axis_of(axis_attribute, to.rank());
    if (axis < 0) return bad_axis(axis_attribute, to.rank());
    std::vector<int64_t> extents;
    int64_t total = 0;
    const bool blocked = axis == 1 && stays_blocked(inputs);
    for (const Tensor& input : inputs) {
      Shape others = input.shape;
      if (others.rank() == to.rank()) others[axis] = to[axis];
      if (!(others == to))
        return fail("shapes " + to_string(to) + " and " + to_string(input.shape) + " cannot be concatenated");
      extents.push_back(input.shape[axis]);
      total += input.shape[axis];
    }
    to[axis] = total;
    Shape stored = to;
    if (blocked) {  // blocks of channels are copied whole, with their padding
      auto whole_blocks = [](int64_t c) { return (c + channel_block() - 1) / channel_block() * channel_block(); };
      stored[axis] = whole_blocks(total);
      extents.back() = whole_blocks(extents.back());
    }
    const Parts parts(stored, axis, extents, bytes_of(inputs[0].dtype, 1));
    const StepTraits traits{.alias = inputs.size() == 1 ? 0 : -1, .concat_in_place = parts.outer == 1};
    Plan plan = make_plan(
        {to},
        [parts](Tensors in, Tensors out) {
          parts.blocks([&](size_t part, int64_t whole_at, int64_t part_at, size_t bytes) {
            std::memcpy(out[0].as<char>() + whole_at, in[part].as<char>() + part_at, bytes);
          });
        },
        traits);
    if (blocked) {
      plan.input_formats.assign(inputs.size(), Format::kBlocked);
      plan.output_format = Format::kBlocked;
    }
    return plan;
  });
}

Verdict supports_split(const Node& node) {
  return accepts(node, 1, {kByteTypes, just(BP_DTYPE_INT64)});
}

std::string split_error(std::span<const int64_t> extents, const Shape& from, int axis, int64_t outputs) {
  if (static_cast<int64_t>(extents.size()) != outputs)
    return "split has " + std::to_string(extents.size()) + " extents for " + std::to_string(outputs) + " outputs";
  for (int64_t extent : extents)
    if (extent < 0 || extent > from[axis])
      return "split contains the extent " + std::to_string(extent) + "; axis " + std::to_string(axis) + " of " +
             to_string(from) + " has " + std::to_string(from[axis]);
  return "the extents of split do not add up to " + std::to_string(from[axis]) + ", the extent of axis " +
         std::to_string(axis) + " of " + to_string(from);
}

std::unique_ptr<Kernel> create_split(const Node& node) {
  const int64_t outputs = node.output_count();
  return make_kernel([axis_attribute = node.attr("axis", int64_t{0}), outputs](Tensors inputs) -> Plan {
    const Shape& from = inputs[0].shape;
    const int axis = axis_of(axis_attribute, from.rank());
    if (axis < 0) return bad_axis(axis_attribute, from.rank());
    std::vector<int64_t> extents;
    if (const Tensor split = at(inputs, 1); split.present()) {
      if (!known(split)) return deferred();
      extents = integers(split);
    } else {  // equal parts; the last ones may be smaller
      const int64_t part = (from[axis] + outputs - 1) / outputs;
      for (int64_t i = 0; i < outputs; ++i) extents.push_back(std::clamp<int64_t>(from[axis] - i * part, 0, part));
    }
    int64_t rest = from[axis];
    std::vector<Shape> shapes;
    for (int64_t extent : extents) {
      if (extent < 0 || extent > rest) break;
      rest -= extent;
      shapes.push_back(from);
      shapes.back()[axis] = extent;
    }
    if (rest != 0 || static_cast<int64_t>(shapes.size()) != outputs || shapes.size() != extents.size())
      return fail(split_error(extents, from, axis, outputs));
    return make_plan(shapes,
                     [parts = Parts(from, axis, extents, bytes_of(inputs[0].dtype, 1))](Tensors in, Tensors out) {
                       parts.blocks([&](size_t part, int64_t whole_at, int64_t part_at, size_t bytes) {
                         if (out[part].data != nullptr)
                           std::memcpy(out[part].as<char>() + part_at, in[0].as<char>() + whole_at, bytes);
                       });
                     });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> concat_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Concat", 4, supports_concat, create_concat}.with(kMovesTexts),
      Row{"", "Split", 13, supports_split, create_split}.with(kOmitsOutput0 | kMovesTexts),
  };
  return kRows;
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals.
#include "kernels/common/values.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

constexpr uint32_t kAll = kTexts | kContainers;

template <uint32_t kInputs>
Verdict supports(const Node& node) {
  return expect_operands(node, kInputs, 1);
}
template <uint32_t kInputs>
Verdict supports_of_sequence(const Node& node) {
  if (node.input_type(0).kind != BP_KIND_SEQUENCE) return no(BP_REASON_DTYPE, "input 0 is not a sequence");
  return expect_operands(node, kInputs, 1);
}

size_t length(const Value& sequence) {
  return sequence.elements->values.size();
}

// Returns a position counted from the front, or nullopt unless `number` is a single integer in range for `count`
// elements.
std::optional<size_t> position(const Value& number, size_t count) {
  std::optional<int64_t> given = integer(number);
  auto n = static_cast<int64_t>(count);
  if (!given || *given < -n || *given >= n) return std::nullopt;
  return static_cast<size_t>(*given < 0 ? *given + n : *given);
}

std::string beyond(const Value& number, size_t count) {
  std::optional<int64_t> given = integer(number);
  if (!given) return "the position is " + describe_value(number) + "; it must be one INT32 or INT64";
  return "position " + std::to_string(*given) + " is out of range for a sequence of " + std::to_string(count) +
         " elements";
}

Verdict supports_construct(const Node& node) {
  return expect_operands(node, std::max(1u, node.input_count()), 1);
}

std::unique_ptr<Kernel> create_construct(const Node&) {
  return make_value_kernel([](Values inputs, Values outputs) -> Failed {
    outputs[0] = Value::container(BP_KIND_SEQUENCE);
    for (Value& input : inputs) outputs[0].elements->values.push_back(own(std::move(input)));
    return std::nullopt;
  });
}

std::unique_ptr<Kernel> create_empty(const Node&) {
  return make_value_kernel([](Values, Values outputs) -> Failed {
    outputs[0] = Value::container(BP_KIND_SEQUENCE);
    return std::nullopt;
  });
}

std::unique_ptr<Kernel> create_insert(const Node&) {
  return make_value_kernel([](Values inputs, Values outputs) -> Failed {
    size_t count = length(inputs[0]), at = count;
    if (inputs.size() > 2 && inputs[2].present()) {
      std::optional<size_t> found = position(inputs[2], count);
      if (!found && integer(inputs[2]) != static_cast<int64_t>(count)) return beyond(inputs[2], count);
      at = found.value_or(count);
    }
    auto& values = own_elements(inputs[0]).values;
    values.insert(at, own(std::move(inputs[1])));
    outputs[0] = std::move(inputs[0]);
    return std::nullopt;
  });
}

std::unique_ptr<Kernel> create_erase(const Node&) {
  return make_value_kernel([](Values inputs, Values outputs) -> Failed {
    size_t count = length(inputs[0]);
    if (count == 0) return "nothing can be erased from an empty sequence";
    size_t at = count - 1;
    if (inputs.size() > 1 && inputs[1].present()) {
      std::optional<size_t> found = position(inputs[1], count);
      if (!found) return beyond(inputs[1], count);
      at = *found;
    }
    auto& values = own_elements(inputs[0]).values;
    values.erase(at);
    outputs[0] = std::move(inputs[0]);
    return std::nullopt;
  });
}

std::unique_ptr<Kernel> create_at(const Node&) {
  return make_value_kernel([](Values inputs, Values outputs) -> Failed {
    std::optional<size_t> at = position(inputs[1], length(inputs[0]));
    if (!at) return beyond(inputs[1], length(inputs[0]));
    outputs[0] = inputs[0].elements->values[*at];
    return std::nullopt;
  });
}

std::unique_ptr<Kernel> create_length(const Node&) {
  return make_value_kernel([](Values inputs, Values outputs) -> Failed {
    outputs[0] = make_scalar(BP_DTYPE_INT64, static_cast<int64_t>(length(inputs[0])));
    return std::nullopt;
  });
}

std::unique_ptr<Kernel> create_join(const Node& node) {
  return make_value_kernel([axis_number = node.attr("axis", int64_t{0}), adds = node.attr("new_axis", int64_t{0}) != 0](
                               Values inputs, Values outputs) -> Failed {
    const std::vector<Value> parts(inputs[0].elements->values.begin(), inputs[0].elements->values.end());
    if (parts.empty()) return "the elements of an empty sequence cannot be concatenated";
    int rank = parts[0].tensor.shape.rank() + (adds ? 1 : 0);
    int axis = axis_of(axis_number, rank);
    if (axis < 0) return bad_axis(axis_number, rank).error;
    outputs[0] = adds ? stack(parts, axis) : concatenate(parts, axis);
    return std::nullopt;
  });
}

std::unique_ptr<Kernel> create_split(const Node& node) {
  return make_value_kernel([axis_number = node.attr("axis", int64_t{0}),
                            keeps = node.attr("keepdims", int64_t{1}) != 0](Values inputs, Values outputs) -> Failed {
    const Shape& shape = inputs[0].tensor.shape;
    int axis = axis_of(axis_number, shape.rank());
    if (axis < 0) return bad_axis(axis_number, shape.rank()).error;
    bool one_each = inputs.size() < 2 || !inputs[1].present();
    std::vector<int64_t> sizes;
    if (!one_each) sizes = integers(inputs[1].tensor);
    if (one_each || inputs[1].tensor.shape.rank() == 0) {
      int64_t size = one_each ? 1 : sizes[0];
      if (size < 1) return "the requested pieces have " + std::to_string(size) + " elements; at least 1 is required";
      sizes.clear();
      require_memory(shape[axis] / size, sizeof(Value) + sizeof(int64_t));
      for (int64_t begin = 0; begin < shape[axis]; begin += size) sizes.push_back(std::min(size, shape[axis] - begin));
    }
    outputs[0] = Value::container(BP_KIND_SEQUENCE);
    int64_t begin = 0;
    Pace pace;
    for (int64_t size : sizes) {
      pace.spend(int64_t{1} << 8);
      if (size < 0 || size > shape[axis] - begin) break;
      Value piece = own(slice(inputs[0], axis, begin, begin + size));
      begin += size;
      if (one_each && !keeps) {
        Shape without;
        for (int d = 0; d < shape.rank(); ++d) {
          if (d != axis) without.push_back(shape[d]);
        }
        piece = reshaped(std::move(piece), without);
      }
      outputs[0].elements->values.push_back(std::move(piece));
    }
    if (const size_t done = outputs[0].elements->values.size(); done != sizes.size())
      return "piece " + std::to_string(done) + " has extent " + std::to_string(sizes[done]) + "; it must be 0 to " +
             std::to_string(shape[axis] - begin) + ", the rest of axis " + std::to_string(axis);
    if (begin != shape[axis])
      return "the extents of the pieces add up to " + std::to_string(begin) + ", not to " +
             std::to_string(shape[axis]) + ", the extent of axis " + std::to_string(axis);
    return std::nullopt;
  });
}

Verdict supports_split(const Node& node) {
  if (node.has_input(1) && (kIndexTypes >> node.input_type(1).dtype & 1) == 0)
    return no(BP_REASON_DTYPE, std::string("input 1 has data type ") + dtype_name(node.input_type(1).dtype) +
                                   "; it must be int32 or int64");
  return supports<1>(node);
}

// ---- Optionals: a tensor or sequence is accepted in place of an optional that contains it

std::unique_ptr<Kernel> create_optional(const Node&) {
  return make_value_kernel([](Values inputs, Values outputs) -> Failed {
    outputs[0] = Value::container(BP_KIND_OPTIONAL);
    if (!inputs.empty() && inputs[0].present()) outputs[0].elements->values.push_back(own(std::move(inputs[0])));
    return std::nullopt;
  });
}

bool has_element(Values inputs) {
  if (inputs.empty() || !inputs[0].present()) return false;
  return inputs[0].kind != BP_KIND_OPTIONAL || length(inputs[0]) == 1;
}

std::unique_ptr<Kernel> create_has_element(const Node&) {
  return make_value_kernel([](Values inputs, Values outputs) -> Failed {
    outputs[0] = make_scalar(BP_DTYPE_BOOL, has_element(inputs));
    return std::nullopt;
  });
}

std::unique_ptr<Kernel> create_get_element(const Node&) {
  return make_value_kernel([](Values inputs, Values outputs) -> Failed {
    if (!has_element(inputs)) return "the optional has no element; check it with OptionalHasElement first";
    outputs[0] = inputs[0].kind == BP_KIND_OPTIONAL ? inputs[0].elements->values[0] : inputs[0];
    return std::nullopt;
  });
}

std::unique_ptr<Kernel> create_identity(const Node&) {
  return make_value_kernel([](Values inputs, Values outputs) -> Failed {
    outputs[0] = std::move(inputs[0]);
    return std::nullopt;
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> sequence_rows() {
  static constexpr Row kRows[] = {
      {"", "SequenceConstruct", 11, supports_construct, create_construct, kAll},
      {"", "SequenceEmpty", 11, supports<0>, create_empty, kAll},
      {"", "SequenceInsert", 11, supports_of_sequence<2>, create_insert, kAll},
      {"", "SequenceErase", 11, supports_of_sequence<1>, create_erase, kAll},
      {"", "SequenceAt", 11, supports_of_sequence<2>, create_at, kAll},
      {"", "SequenceLength", 11, supports_of_sequence<1>, create_length, kAll},
      {"", "ConcatFromSequence", 11, supports_of_sequence<1>, create_join, kAll},
      {"", "SplitToSequence", 11, supports_split, create_split, kAll},
      {"", "Optional", 15, supports<0>, create_optional, kAll},
      {"", "OptionalHasElement", 15, supports<0>, create_has_element, kAll},
      {"", "OptionalGetElement", 15, supports<1>, create_get_element, kAll},
      {"", "Identity", 1, supports<1>, create_identity, kAll},
  };
  return kRows;
}

}  // namespace backplane::cpu

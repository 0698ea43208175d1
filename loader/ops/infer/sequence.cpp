// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals.
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

using model::Type;

Type container(uint32_t kind, const Type& element) {
  Type type;
  type.kind = kind;
  if (element.kind) type.element = std::make_shared<Type>(element);
  return type;
}

Type element_of(const Type& type) {
  return type.element ? *type.element : Type();
}

Status construct(Context& c) {
  Type element = c.input(0);
  for (size_t slot = 1; slot < c.inputs(); ++slot) {
    if (!join_types(element, c.input(slot))) {
      return c.fail("joins a " + type_text(element) + " and a " + type_text(c.input(slot)) + ": the types must match");
    }
  }
  c.copy_type(0, container(BP_KIND_SEQUENCE, element));
  return {};
}

Status empty(Context& c) {
  Type element;
  element.kind = BP_KIND_TENSOR;
  int64_t dtype = c.integer("dtype");
  if (dtype < 0 || dtype > BP_DTYPE_INT2)
    return c.fail("dtype is " + std::to_string(dtype) + ", which ONNX does not define");
  element.dtype = dtype ? static_cast<bp_dtype_t>(dtype) : BP_DTYPE_FLOAT;
  c.copy_type(0, container(BP_KIND_SEQUENCE, element));
  return {};
}

Status insert(Context& c) {
  Type element = element_of(c.input(0));
  if (!join_types(element, c.input(1))) {
    return c.fail("inserts a " + type_text(c.input(1)) + " into a " + type_text(c.input(0)) +
                  ": the element types must match");
  }
  c.copy_type(0, container(BP_KIND_SEQUENCE, element));
  return {};
}

Status erase(Context& c) {
  c.copy_type(0, c.input(0));
  return {};
}

Status at(Context& c) {
  c.copy_type(0, element_of(c.input(0)));
  return {};
}

Status number(Context& c) {
  return c.set_shape(0, {});
}

Status join(Context& c) {
  Type element = element_of(c.input(0));
  c.set_dtype(0, element.dtype);
  if (element.rank < 0) return {};
  bool stack = c.integer("new_axis") != 0;
  int64_t axis;
  BP_TRY(c.axis(c.integer("axis"), element.rank + stack, axis));
  Shape shape;
  for (const bp_dim_t& dim : element.dims) shape.push_back(c.math().of_dim(dim));
  if (stack) {
    shape.insert(shape.begin() + axis, Scalar());
  } else {
    shape[axis] = {};
  }
  return c.set_shape(0, shape);
}

Status cut(Context& c) {
  Type element = c.input(0);
  if (element.rank >= 0) {
    int64_t axis;
    BP_TRY(c.axis(c.integer("axis"), element.rank, axis));
    auto size = c.number(1);
    bool one_each = !c.has(1);
    if (one_each && c.integer("keepdims") == 0) {
      element.dims.erase(element.dims.begin() + axis);
      --element.rank;
    } else {
      bool divides = size && c.ranked(1) && c.rank(1) == 0 && *size > 0 && element.dims[axis].extent >= 0 &&
                     element.dims[axis].extent % *size == 0;
      element.dims[axis] = {one_each ? 1 : divides ? *size : -1, BP_NONE, 0};
    }
  }
  c.copy_type(0, container(BP_KIND_SEQUENCE, element));
  return {};
}

Status optional(Context& c) {
  if (c.has(0)) c.copy_type(0, container(BP_KIND_OPTIONAL, c.input(0)));
  return {};
}

Status get(Context& c) {
  const Type& input = c.input(0);
  c.copy_type(0, input.kind == BP_KIND_OPTIONAL ? element_of(input) : input);
  return {};
}

}  // namespace

std::span<const RuleRow> sequence_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "ConcatFromSequence", join},   {"", "Optional", optional},   {"", "OptionalGetElement", get},
      {"", "OptionalHasElement", number}, {"", "SequenceAt", at},       {"", "SequenceConstruct", construct},
      {"", "SequenceEmpty", empty},       {"", "SequenceErase", erase}, {"", "SequenceInsert", insert},
      {"", "SequenceLength", number},     {"", "SplitToSequence", cut},
  };
  return kRows;
}

}  // namespace backplane::ops

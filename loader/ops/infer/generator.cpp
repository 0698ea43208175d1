// SPDX-License-Identifier: Apache-2.0
// Operators that create tensors: constants, ranges, windows, random numbers.
#include <cmath>
#include <cstring>

#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

Status constant(Context& c) {
  for (std::string_view name : {"value", "sparse_value"}) {
    const model::Weight* weight = c.tensor(name);
    if (!weight) continue;
    c.set_dtype(0, weight->dtype);
    if (name == "sparse_value") return {};  // `weight` holds only the non-zero values, not the shape
    Shape shape(weight->dims.begin(), weight->dims.end());
    if (auto known_data = known_data_of_weight(*weight)) c.set_known_data(0, std::move(*known_data));
    return c.set_shape(0, shape);
  }
  struct Form {
    std::string_view name;
    bp_dtype_t dtype;
    bool list;
  };
  constexpr Form kForms[] = {
      {"value_float", BP_DTYPE_FLOAT, false},   {"value_floats", BP_DTYPE_FLOAT, true},
      {"value_int", BP_DTYPE_INT64, false},     {"value_ints", BP_DTYPE_INT64, true},
      {"value_string", BP_DTYPE_STRING, false}, {"value_strings", BP_DTYPE_STRING, true},
  };
  for (const Form& form : kForms) {
    if (!c.has_attribute(form.name)) continue;
    c.set_dtype(0, form.dtype);
    BP_TRY(c.set_shape(0, form.list ? Shape{static_cast<int64_t>(c.count(form.name))} : Shape{}));
    const model::Attribute& attribute = *c.node().find(form.name);
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.data)) {
      c.set_known_data(0, KnownData(ints->begin(), ints->end()));
    } else if (const auto* floats = std::get_if<std::vector<float>>(&attribute.data)) {
      KnownData known_data;
      for (float value : *floats) known_data.push_back(Scalar::of_real(value));
      c.set_known_data(0, std::move(known_data));
    }
    return {};
  }
  return {};
}

// Tracks only integer elements, because shape arithmetic rarely uses real constants.
Status constant_of_shape(Context& c) {
  BP_TRY(c.expect_rank(0, 1, 1));
  const model::Weight* value = c.tensor("value");
  c.set_dtype(0, value ? value->dtype : BP_DTYPE_FLOAT);
  const KnownData* wanted = c.known_data(0);
  if (!wanted) {
    auto rank = c.length(0);
    return rank ? c.set_rank(0, *rank) : Status();
  }
  BP_TRY(c.set_shape(0, *wanted));
  Scalar count = c.math().product(*wanted);
  if (!value || !count.is_number() || count.value > static_cast<int64_t>(kMaxKnownData)) return {};
  auto element = known_data_of_weight(*value);
  if (element && element->size() == 1 && (*element)[0].is_number()) {
    c.set_known_data(0, KnownData(count.value, (*element)[0]));
  }
  return {};
}

Status range(Context& c) {
  for (size_t slot : {0, 1, 2}) BP_TRY(c.expect_rank(slot, 0, 1));
  const KnownData *start = c.known_data(0), *limit = c.known_data(1), *delta = c.known_data(2);
  Scalar count;
  if (start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1) {
    Scalar a = start->front(), b = limit->front(), step = delta->front();
    Expressions& m = c.math();
    if (step.is(0) || (step.kind == Scalar::kReal && step.real_value == 0))
      return c.fail("delta is 0, but it must not be");
    if (step.is_number() && !step.is(INT64_MIN)) {
      bool down = step.value < 0;
      Scalar span = down ? m.subtract(a, b) : m.subtract(b, a);
      count = m.max(m.ceil_divide(span, down ? -step.value : step.value), 0);
    } else if (a.kind == Scalar::kReal && b.kind == Scalar::kReal && step.kind == Scalar::kReal) {
      double number = std::max(std::ceil((b.real_value - a.real_value) / step.real_value), 0.0);
      if (number < 1e15) count = static_cast<int64_t>(number);
    }
    if (count.is_number() && count.value <= static_cast<int64_t>(kMaxKnownData) && step.is_number()) {
      KnownData known_data;
      for (int64_t i = 0; i < count.value; ++i) known_data.push_back(m.add(a, m.multiply(step, i)));
      c.set_known_data(0, std::move(known_data));
    }
  }
  return c.set_shape(0, {count});
}

Status window(Context& c) {
  BP_TRY(c.set_dtype_number(0, c.integer("output_datatype")));
  const KnownData* size = c.known_data(0);
  return c.set_shape(0, {size && size->size() == 1 ? (*size)[0] : Scalar()});
}

Status random(Context& c) {
  BP_TRY(c.set_dtype_number(0, c.integer("dtype")));
  const auto& shape = c.integers("shape");
  return c.set_shape(0, Shape(shape.begin(), shape.end()));
}

// The output has the input's data type unless attribute `dtype` is set.
Status random_like(Context& c) {
  if (int64_t dtype = c.integer("dtype")) {
    BP_TRY(c.set_dtype_number(0, dtype));
  } else {
    c.set_dtype(0, c.input(0).dtype);
  }
  return same_shape(c);
}

Status eye_like(Context& c) {
  BP_TRY(c.expect_rank(0, 2, 2));
  return random_like(c);
}

Status multinomial(Context& c) {
  BP_TRY(c.expect_rank(0, 2, 2));
  BP_TRY(c.set_dtype_number(0, c.integer("dtype")));
  return c.set_shape(0, {c.dim(0, 0), c.integer("sample_size")});
}

}  // namespace

std::span<const RuleRow> generator_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "Bernoulli", random_like}, {"", "BlackmanWindow", window},
      {"", "Constant", constant},     {"", "ConstantOfShape", constant_of_shape},
      {"", "EyeLike", eye_like},      {"", "HammingWindow", window},
      {"", "HannWindow", window},     {"", "Multinomial", multinomial},
      {"", "RandomNormal", random},   {"", "RandomNormalLike", random_like},
      {"", "RandomUniform", random},  {"", "RandomUniformLike", random_like},
      {"", "Range", range},
  };
  return kRows;
}

}  // namespace backplane::ops

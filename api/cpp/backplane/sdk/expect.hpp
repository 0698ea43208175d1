// SPDX-License-Identifier: Apache-2.0
// The checks that every vendor needs before accepting a node, as a chain. The first check that fails sets the verdict:
// its reason code, and a message that describes the problem.
//
//   return expect(node).inputs(2).outputs(1).dtypes(kFloats).static_shapes().same_shapes().yes(seconds, 0.5f);
//
// Checks skip omitted operands; the check `inputs` decides which ones may be omitted.
#pragma once

#include <initializer_list>

#include "backplane/sdk/attributes.hpp"
#include "backplane/sdk/coverage.hpp"
#include "backplane/sdk/dtypes.hpp"
#include "backplane/sdk/shape.hpp"

namespace backplane::sdk {

// The form of a call: the minimum and maximum number of inputs (optional ones in between may be omitted), the type of
// output 0, and the maximum number of outputs.
struct Form {
  uint32_t least, most;
  enum Result { kSame, kBool, kOpen } result = kSame;  // the type of input 0; bool; any type that `supports` allows
  uint32_t outputs = 1;
};
inline constexpr Form kUnary{1, 1}, kBinary{2, 2}, kVariadic{1, UINT32_MAX}, kUnaryOpen{1, 1, Form::kOpen};
inline constexpr Form kUnaryTest{1, 1, Form::kBool}, kBinaryTest{2, 2, Form::kBool};

inline bool accepted(const Verdict& verdict) {
  return verdict.answer != BP_ANSWER_NO;
}

class Expect {
 public:
  explicit Expect(const Node& node) : node_(node), verdict_(sdk::yes()) {}

  // ---- operands ----------------------------------------------------------------------------------------------------

  // There are exactly `count` inputs, and none is omitted.
  Expect& inputs(uint32_t count) { return inputs(count, count); }
  // There are `least` to `most` inputs, of which the first `least` are not omitted. Omitted trailing inputs do not
  // count.
  Expect& inputs(uint32_t least, uint32_t most) {
    const uint32_t count = given(node_.input_count(), [&](uint32_t i) { return node_.input(i); });
    if (count < least || count > most)
      return fail(BP_REASON_OTHER, "it has " + std::to_string(count) + " inputs; supported: " + std::to_string(least) +
                                       (most == least        ? ""
                                        : most == UINT32_MAX ? " and more"
                                                             : " to " + std::to_string(most)));
    for (uint32_t i = 0; i < least; ++i) {
      if (!node_.input(i)) return fail(BP_REASON_OTHER, "input " + std::to_string(i) + " is omitted; it is required");
    }
    return *this;
  }
  // At least one output is used, and none after the first `most`.
  Expect& outputs(uint32_t most) {
    const uint32_t count = given(node_.output_count(), [&](uint32_t i) { return node_.output(i); });
    if (count == 0 || count > most)
      fail(BP_REASON_OTHER, std::to_string(count) + " outputs are used; supported: 1" +
                                (most == 1 ? "" : " to " + std::to_string(most)));
    return *this;
  }
  Expect& form(const Form& form) {
    inputs(form.least, form.most).outputs(form.outputs);
    if (!ok() || form.result == Form::kOpen || !node_.output(0)) return *this;
    const bp_dtype_t seen = node_.output(0).dtype();
    const bp_dtype_t wanted = form.result == Form::kBool ? BP_DTYPE_BOOL : node_.input(0) ? node_.input(0).dtype() : 0;
    if (seen != wanted)
      fail(BP_REASON_DTYPE, "output 0 is " + std::string(view::dtype_name(seen)) + " but must be " +
                                std::string(view::dtype_name(wanted)));
    return *this;
  }

  // All inputs and outputs are tensors of these data types.
  Expect& dtypes(bp_dtype_set_t set) {
    return each_operand([&](const Value& value, const Operand& operand) {
      if (!value.is_tensor()) fail(BP_REASON_DTYPE, operand.text() + " is not a tensor; only tensors are supported");
      if (!contains(set, value.dtype())) fail_dtype(value, operand, set);
    });
  }
  Expect& input_dtype(uint32_t slot, bp_dtype_set_t set) {
    if (ok() && node_.input(slot) && !contains(set, node_.input(slot).dtype()))
      fail_dtype(node_.input(slot), {false, slot}, set);
    return *this;
  }
  Expect& output_dtype(uint32_t slot, bp_dtype_set_t set) {
    if (ok() && node_.output(slot) && !contains(set, node_.output(slot).dtype()))
      fail_dtype(node_.output(slot), {true, slot}, set);
    return *this;
  }
  // All inputs have the data type of input 0.
  Expect& same_dtypes() {
    for (uint32_t i = 1; ok() && node_.input(0) && i < node_.input_count(); ++i) same_dtype(0, i);
    return *this;
  }
  // Both inputs, if present, have the same data type.
  Expect& same_dtype(uint32_t a, uint32_t b) {
    const Value x = node_.input(a), y = node_.input(b);
    if (ok() && x && y && x.dtype() != y.dtype())
      fail(BP_REASON_DTYPE, "input " + std::to_string(b) + " is " + std::string(view::dtype_name(y.dtype())) +
                                " and input " + std::to_string(a) + " is " + std::string(view::dtype_name(x.dtype())) +
                                "; only equal types are supported");
    return *this;
  }

  // The rank and all extents of each operand are known.
  Expect& static_shapes() {
    return each_operand([&](const Value& value, const Operand& operand) {
      if (!value.has_static_shape())
        fail(BP_REASON_SHAPE,
             "the shape of " + operand.text() + " is not known before the run; only static shapes are supported");
    });
  }
  // All operands have the extents of output 0.
  Expect& same_shapes() {
    if (!ok() || !node_.output(0)) return *this;
    const Shape shape = node_.output(0).extents();
    return each_operand([&](const Value& value, const Operand& operand) {
      if (value.rank() != node_.output(0).rank() || value.extents() != shape)
        fail(BP_REASON_SHAPE, operand.text() + " is " + to_string(value.extents()) + " and output 0 " +
                                  to_string(shape) + "; only equal shapes are supported");
    });
  }
  // All operands have a known rank of at most `most`.
  Expect& ranks(int32_t most) {
    return each_operand([&](const Value& value, const Operand& operand) { check_rank(value, operand, 0, most); });
  }
  Expect& rank(uint32_t slot, int32_t least, int32_t most = INT32_MAX) {
    if (ok() && node_.input(slot)) check_rank(node_.input(slot), {false, slot}, least, most);
    return *this;
  }
  // No operand with a static shape has more than `most` elements.
  Expect& elements_at_most(uint64_t most) {
    return each_operand([&](const Value& value, const Operand& operand) {
      if (!value.has_static_shape()) return;
      const Shape shape = value.extents();
      const auto count = view::dense_bytes(BP_DTYPE_UINT8, shape.data(), static_cast<uint32_t>(shape.size()));
      if (!count || *count > most)
        fail(BP_REASON_SHAPE, operand.text() + " is " + to_string(shape) + "; at most " + std::to_string(most) +
                                  " elements are supported");
    });
  }
  // The input is omitted or a constant of the model.
  Expect& constant(uint32_t slot) {
    const Value value = node_.input(slot);
    if (ok() && value && value.weight() == nullptr)
      fail(BP_REASON_CONSTANT, "input " + std::to_string(slot) + " is not a constant; only a constant is supported");
    return *this;
  }

  // ---- attributes --------------------------------------------------------------------------------------------------

  // Each attribute whose name attribute_type knows has ONNX's type for that name. (The functions that read attributes
  // treat one of another type as absent.)
  Expect& attributes() {
    for (uint32_t i = 0; ok() && i < node_.raw().attribute_count; ++i) {
      const bp_attribute_t& each = *bp_graph_attribute(node_.graph(), node_.raw().first_attribute + i);
      const uint32_t type = attribute_type(text(each.name));
      if (type != 0 && each.type != type) fail_type(each, type);
    }
    return *this;
  }
  // The attribute is absent, or an integer in this range.
  Expect& integer(std::string_view name, int64_t least, int64_t most) {
    if (!has(name, BP_ATTR_INT)) return *this;
    const int64_t value = node_.int_attribute(name, least);
    if (value < least || value > most)
      fail(BP_REASON_ATTRIBUTE, std::string(name) + " is " + std::to_string(value) + "; supported: " +
                                    std::to_string(least) + (most == least ? "" : " to " + std::to_string(most)));
    return *this;
  }
  // The attribute is absent, or a number in this range; NaN is refused.
  Expect& number(std::string_view name, float least, float most) {
    if (!has(name, BP_ATTR_FLOAT)) return *this;
    const float value = node_.float_attribute(name, least);
    if (!(value >= least && value <= most))
      fail(BP_REASON_ATTRIBUTE, std::string(name) + " is " + std::to_string(value) +
                                    "; supported: " + std::to_string(least) + " to " + std::to_string(most));
    return *this;
  }
  // The attribute is absent, or one of these strings.
  Expect& choice(std::string_view name, std::initializer_list<std::string_view> known) {
    if (!has(name, BP_ATTR_STRING)) return *this;
    const std::string_view value = node_.text_attribute(name, "");
    if (std::find(known.begin(), known.end(), value) != known.end()) return *this;
    std::string all;
    for (const std::string_view each : known) all.append(all.empty() ? "" : ", ").append(each);
    return fail(BP_REASON_ATTRIBUTE, std::string(name) + " is '" + std::string(value) + "'; supported: " + all);
  }
  // The attribute is absent, empty, or `count` integers in this range.
  Expect& integers(std::string_view name, size_t count, int64_t least, int64_t most) {
    if (!has(name, BP_ATTR_INTS)) return *this;
    const std::vector<int64_t> values = node_.ints_attribute(name);
    if (values.empty()) return *this;
    const auto outside = [&](int64_t value) { return value < least || value > most; };
    if (values.size() != count || std::any_of(values.begin(), values.end(), outside))
      fail(BP_REASON_ATTRIBUTE, std::string(name) + " is " + to_string(values) +
                                    "; supported: " + std::to_string(count) + " integers from " +
                                    std::to_string(least) + " to " + std::to_string(most));
    return *this;
  }

  // ---- other checks, and the verdict -------------------------------------------------------------------------------

  // A check of the vendor's own. `detail` is the message, or a function that returns it and is called only if the check
  // fails.
  template <class Text>
  Expect& that(bool holds, uint32_t reason, const Text& detail) {
    if (holds || !ok()) return *this;
    if constexpr (std::is_invocable_v<Text>)
      return fail(reason, detail());
    else
      return fail(reason, detail);
  }
  // Applies another `supports` function to the node. NULL does nothing.
  Expect& also(Verdict (*supports)(const Node&)) {
    if (ok() && supports != nullptr) verdict_ = supports(node_);
    return *this;
  }

  bool ok() const { return accepted(verdict_); }
  operator Verdict() const { return verdict_; }  // NOLINT(google-explicit-constructor): ends the chain
  // Ends the chain and returns the verdict. If the node is accepted, the verdict gets these estimates.
  Verdict yes(double seconds, float confidence) {
    if (ok()) {
      verdict_.seconds = seconds;
      verdict_.confidence = confidence;
    }
    return verdict_;
  }

 private:
  struct Operand {
    bool output;
    uint32_t slot;
    std::string text() const { return (output ? "output " : "input ") + std::to_string(slot); }
  };

  Expect& fail(uint32_t reason, std::string detail) {
    if (ok()) verdict_ = no(reason, std::move(detail));
    return *this;
  }
  Expect& fail_dtype(const Value& value, const Operand& operand, bp_dtype_set_t set) {
    return fail(BP_REASON_DTYPE, operand.text() + " is " + std::string(view::dtype_name(value.dtype())) +
                                     "; supported: " + to_string(set));
  }
  Expect& fail_type(const bp_attribute_t& attribute, uint32_t type) {
    return fail(BP_REASON_ATTRIBUTE, "attribute " + std::string(text(attribute.name)) + " has type " +
                                         std::string(attribute_type_name(attribute.type)) + "; it must be " +
                                         std::string(attribute_type_name(type)));
  }
  void check_rank(const Value& value, const Operand& operand, int32_t least, int32_t most) {
    if (value.rank() < 0)
      fail(BP_REASON_SHAPE, "the rank of " + operand.text() + " is not known; only known ranks are supported");
    if (value.rank() >= least && value.rank() <= most) return;
    fail(BP_REASON_SHAPE, operand.text() + " has rank " + std::to_string(value.rank()) +
                              "; supported: " + std::to_string(least) +
                              (most == INT32_MAX ? " and more" : " to " + std::to_string(most)));
  }
  // Whether the attribute is present with this type. If it has another type, the verdict becomes "not supported".
  bool has(std::string_view name, uint32_t type) {
    const bp_attribute_t* attribute = ok() ? node_.attribute(name) : nullptr;
    if (attribute == nullptr) return false;
    if (attribute->type != type) fail_type(*attribute, type);
    return ok();
  }
  template <class Get>
  static uint32_t given(uint32_t count, const Get& get) {
    while (count > 0 && !get(count - 1)) --count;
    return count;
  }
  template <class Check>
  Expect& each_operand(const Check& check) {
    for (uint32_t i = 0; ok() && i < node_.input_count(); ++i) {
      if (const Value value = node_.input(i)) check(value, Operand{false, i});
    }
    for (uint32_t i = 0; ok() && i < node_.output_count(); ++i) {
      if (const Value value = node_.output(i)) check(value, Operand{true, i});
    }
    return *this;
  }

  Node node_;
  Verdict verdict_;
};

inline Expect expect(const Node& node) {
  return Expect(node);
}

}  // namespace backplane::sdk

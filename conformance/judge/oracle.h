// SPDX-License-Identifier: Apache-2.0
// The oracle: the expected results of operators, computed in double precision and written for clarity.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "judge/array.h"
#include "judge/bounds.h"
#include "onnx/graph.h"

namespace backplane::conform {

using onnx::Attribute;
using onnx::Attributes;
using onnx::GraphSpec;
using onnx::NodeSpec;
using onnx::ValueSpec;

// One call of an operator.
class Call {
 public:
  Call(std::vector<const Array*> inputs, const Attributes& attributes, uint32_t output_count)
      : inputs_(std::move(inputs)), attributes_(attributes), output_count_(output_count) {}

  size_t input_count() const { return inputs_.size(); }
  uint32_t output_count() const { return output_count_; }
  const Attributes& attributes() const { return attributes_; }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  // Inputs. These functions throw std::invalid_argument if the input is omitted or does not meet the requirement.
  const Array& in(size_t i) const;
  const Array& in(size_t i, int64_t least_rank) const;
  // The elements of an integer vector or scalar, clamped to ±2^53.
  std::vector<int64_t> integers(size_t i) const;
  // The element of an input that must have exactly one.
  double single(size_t i) const;
  // The elements of a vector that must have `count` of them.
  const std::vector<double>& vector(size_t i, int64_t count) const;

  // Attributes. If the attribute is missing, these functions return `otherwise`, text() an empty string, and reals() no
  // numbers. They throw std::invalid_argument if it has another type. Cases write out the defaults that ONNX's schemas
  // fix.
  int64_t integer(std::string_view name, int64_t otherwise = 0) const;
  double real(std::string_view name, double otherwise = 0) const;
  std::string_view text(std::string_view name) const;
  std::vector<int64_t> ints(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> reals(std::string_view name) const;

 private:
  std::vector<const Array*> inputs_;
  const Attributes& attributes_;
  uint32_t output_count_;
};

// An expected output and the rule for its bound. The constructor replaces the rule of an output that is not
// floating-point by Rule::exact(), unless the kind of the rule is kStep.
struct Reference {
  Array value;
  Rule rule;
  std::vector<double> scale = {};    // the rule's `scale` for each element; empty if the rule needs none
  std::vector<double> typical = {};  // only for Rule::kGraph: the mean square of error / typical must not exceed 1

  Reference(Array array, Rule how) : value(std::move(array)), rule(how) {
    if (!is_float(value.dtype) && how.kind != Rule::kStep) rule = Rule::exact();
  }
};

using References = std::vector<Reference>;
// Computes an arbitrary call. Throws std::invalid_argument if the operator does not define the call, or if the oracle
// cannot compute it.
using Oracle = References (*)(const Call& call);

struct Operator {
  // The name by which cases and oracles call the operator: its type, after the domain if ONNX's domain has an operator
  // of that type, too ("com.microsoft.Gelu").
  std::string_view name;
  // The operator versions that compute what the oracle computes and accept what the cases pass, oldest first. A case
  // may need a newer one than the first: Problem::since in cases/problem.h.
  std::vector<uint32_t> versions;
  Oracle compute;
  std::string_view domain = "";  // empty for ONNX's own domain, ai.onnx

  // The operator's type in a graph: the name without the domain.
  std::string_view op_type() const {
    return !domain.empty() && name.starts_with(domain) ? name.substr(domain.size() + 1) : name;
  }
};
using FamilyOperators = std::span<const Operator> (*)();

// Sets the operators that the oracle has, in the order of all_operators(). Called once, before the functions below and
// before other threads start: a program calls use_families() of families/families.h. Does not copy the list.
void set_operators(std::span<const FamilyOperators> families);

// Returns the newest of `versions` in operator set `opset`, or nullopt if there is none. With `brain`, considers only
// versions that support BFLOAT16.
std::optional<uint32_t> newest_form(const std::vector<uint32_t>& versions, uint32_t opset, bool brain);
// Removes the attributes that the operator has only in versions newer than `version`. Knows only attributes that cases
// set. A case that may run in an older form gives such attributes values that change nothing.
void drop_newer_attributes(std::string_view op, uint32_t version, Attributes& attributes);
// Throws std::invalid_argument if the oracle does not have the operator.
const Operator& find_operator(std::string_view name);
std::vector<const Operator*> all_operators();
// Returns at least as many outputs as the call has. Throws std::invalid_argument like find_operator() and Oracle.
References compute(std::string_view op, const Call& call);

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// The expected result of every operator, computed in double precision and written for clarity.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "judge/array.h"
#include "judge/tolerance.h"
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
  // An input. These throw std::invalid_argument if it is omitted, or is not as it must be.
  const Array& in(size_t i) const;
  const Array& in(size_t i, int64_t least_rank) const;
  // The elements of a vector of integers, or of one; beyond 2^53 the nearest.
  std::vector<int64_t> integers(size_t i) const;
  // The only element.
  double single(size_t i) const;
  // The elements of a vector of `count`.
  const std::vector<double>& vector(size_t i, int64_t count) const;

  // Attributes; throw std::invalid_argument for one of another type. All defaults are written out by the case, except
  // those that ONNX leaves to the operator.
  int64_t integer(std::string_view name, int64_t otherwise = 0) const;
  double real(std::string_view name, double otherwise = 0) const;
  std::string_view text(std::string_view name) const;
  std::vector<int64_t> ints(std::string_view name, std::vector<int64_t> otherwise = {}) const;

 private:
  std::vector<const Array*> inputs_;
  const Attributes& attributes_;
  uint32_t output_count_;
};

// An expected output and the rule for its bound. Every reference has a rule.
struct Reference {
  Array value;
  Rule rule;
  std::vector<double> scale = {};    // the rule's scale for each element; empty if it has none
  std::vector<double> typical = {};  // of Rule::kGraph: what the root mean square of the errors must stay below

  Reference(Array array, Rule how) : value(std::move(array)), rule(how) {
    if (!is_float(value.dtype) && how.kind != Rule::kStep) rule = Rule::exact();
  }
};

using References = std::vector<Reference>;
// Throws std::invalid_argument for calls that the operator does not define or the oracle does not know; so a call may
// come from anywhere.
using Oracle = References (*)(const Call& call);

struct Operator {
  std::string_view name;
  // The operator-set versions whose forms mean what the oracle computes and take what the cases give, oldest first.
  std::vector<uint32_t> versions;
  Oracle compute;
  std::string_view domain = "";  // empty: ai.onnx
};

// The newest of an operator's versions in operator set `opset`, if there is one; with `brain` one that takes BFLOAT16.
std::optional<uint32_t> newest_form(const std::vector<uint32_t>& versions, uint32_t opset, bool brain);
// Throws std::invalid_argument.
const Operator& find_operator(std::string_view name);
std::vector<const Operator*> all_operators();
// The operator's outputs: at least as many as the call has. Throws std::invalid_argument.
References compute(std::string_view op, const Call& call);

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// The operator cases accept exact results, rounded to their type, but not those of a backend that ignores an attribute
// or an input.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

#include "cases/cases.h"

namespace backplane::conform {
namespace {

std::vector<onnx::Tensor> rounded(const References& results) {
  std::vector<onnx::Tensor> tensors;
  for (const Reference& one : results) {
    Array value = one.value;
    if (one.rule.kind == Rule::kStep) {
      for (double& x : value.values) x = std::nearbyint(x);
    }
    tensors.push_back(to_tensor(value));
  }
  return tensors;
}

Problem drawn(const OpCase& one, uint64_t seed) {
  Random random(seed, one.name);
  return one.make(random);
}

TEST(Cases, AcceptExactResults) {
  for (const OpCase& one : op_cases()) {
    for (uint64_t seed = 1; seed <= (one.once ? 1 : 3); ++seed) {
      const Problem problem = drawn(one, seed);
      const References expected = reference(problem);
      const Judgement judgement = judge_all(problem, expected, rounded(expected), false);
      EXPECT_EQ(judgement.answer, Judgement::kRight) << one.name << " seed " << seed << ": " << judgement.reason;
    }
  }
}

// Whether the harness accepts the results of the problem `computed` for the problem `asked`. A call that the oracle
// refuses has no results.
bool accepts(const Problem& asked, const Problem& computed) {
  try {
    const References expected = reference(asked);
    References results = reference(computed);
    if (results.size() < expected.size()) return false;
    results.erase(results.begin() + static_cast<int64_t>(expected.size()), results.end());
    return judge_all(asked, expected, rounded(results), false).answer == Judgement::kRight;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

using Value = decltype(Attribute::value);

std::string text_of(const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const auto* real = std::get_if<float>(&value)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return fmt::format("[{}]", fmt::join(*list, ","));
  return "a list";
}

// Values that a backend may use in all cases instead of the given ones: each of the given values in turn or, if there
// is only one and it is not a text, another value.
std::vector<Value> replacements(const std::map<std::string, Value>& given) {
  std::vector<Value> values;
  for (const auto& [text, value] : given) values.push_back(value);
  if (values.size() > 1) return values;
  Value& only = values[0];
  if (std::holds_alternative<std::string>(only)) return {};
  if (auto* number = std::get_if<int64_t>(&only)) *number = *number == 0 ? 1 : 0;
  if (auto* real = std::get_if<float>(&only)) *real = *real == 0 ? 1 : 2 * *real;
  if (auto* list = std::get_if<std::vector<int64_t>>(&only)) {
    for (int64_t& number : *list) number += 1;
  }
  return values;
}

// The attributes for which the operator's cases do not notice that one value is used in all cases, and the inputs for
// which they do not notice that 0 is used in all cases.
std::set<std::string> unnoticed(const std::string& op, const std::vector<const OpCase*>& cases) {
  std::map<std::string, std::map<std::string, Value>> given;  // by attribute
  std::set<size_t> inputs;
  std::vector<Problem> problems;
  for (const OpCase* one : cases) {
    problems.push_back(drawn(*one, 1));
    for (const Attribute& a : problems.back().attributes) given[a.name].emplace(text_of(a.value), a.value);
    for (size_t i = 0; i < problems.back().arguments.size(); ++i) inputs.insert(i);
  }
  const auto is_noticed = [&](const std::function<void(Problem&)>& change) {
    return std::ranges::any_of(problems, [&](const Problem& problem) {
      Problem changed = problem;
      change(changed);
      return !accepts(problem, changed);
    });
  };
  std::set<std::string> result;
  for (const auto& [key, values] : given) {
    const std::string& name = key;  // Clang 14 cannot capture a binding
    for (const Value& value : replacements(values)) {
      const auto change = [&](Problem& problem) {
        for (Attribute& attribute : problem.attributes) {
          if (attribute.name == name) attribute.value = value;
        }
      };
      if (!is_noticed(change)) result.insert(fmt::format("{}: {} = {}", op, name, text_of(value)));
    }
  }
  for (const size_t input : inputs) {
    const auto change = [&](Problem& problem) {
      if (input >= problem.arguments.size() || !problem.arguments[input].tensor) return;
      for (std::byte& byte : problem.arguments[input].tensor->bytes) byte = std::byte{0};
    };
    if (!is_noticed(change)) result.insert(fmt::format("{}: input {} = 0", op, input));
  }
  return result;
}

TEST(Cases, NoticeABackendThatIgnoresAnAttributeOrInput) {
  // Attributes and inputs that have no effect in any of the cases, because they are for other types, for outputs that
  // are not used or for training, because they repeat what a shape says, or because they switch off what is off anyway.
  const std::set<std::string> right = {"Attention: qk_matmul_output_mode = 1",
                                       "BatchNormalization: momentum = 1.8",
                                       "BatchNormalization: training_mode = 1",
                                       "Cast: saturate = 0",
                                       "CastLike: input 1 = 0",
                                       "CastLike: saturate = 0",
                                       "ConvTranspose: kernel_shape = [2,2]",
                                       "ConvTranspose: kernel_shape = [3,3]",
                                       "ConvTranspose: kernel_shape = [4,4]",
                                       "ConvTranspose: kernel_shape = [4]",
                                       "DequantizeLinear: block_size = 4",
                                       "DequantizeLinear: output_dtype = 1",
                                       "Dropout: input 1 = 0",
                                       "Dropout: input 2 = 0",
                                       "EyeLike: input 0 = 0",
                                       "GroupNormalization: stash_type = 0",
                                       "LayerNormalization: stash_type = 0",
                                       "MaxPool: storage_order = 1",
                                       "QuantizeLinear: block_size = 4",
                                       "QuantizeLinear: precision = 1",
                                       "QuantizeLinear: saturate = 0",
                                       "RMSNormalization: stash_type = 0",
                                       "ReduceLogSum: noop_with_empty_axes = 1",
                                       "Resize: extrapolation_value = 1.5",
                                       "Shape: input 0 = 0",
                                       "Size: input 0 = 0",
                                       "Split: num_outputs = 2",
                                       "Split: num_outputs = 3",
                                       "TensorScatter: mode = circular"};
  std::map<std::string, std::vector<const OpCase*>> by_operator;
  for (const OpCase& one : op_cases()) by_operator[one.op].push_back(&one);
  std::set<std::string> seen;
  for (const auto& [op, cases] : by_operator) seen.merge(unnoticed(op, cases));
  EXPECT_EQ(seen, right);
}

}  // namespace
}  // namespace backplane::conform

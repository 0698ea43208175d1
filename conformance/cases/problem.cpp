// SPDX-License-Identifier: Apache-2.0
#include "cases/problem.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace backplane::conform {

std::vector<onnx::Tensor> run_inputs(const Problem& problem) {
  std::vector<onnx::Tensor> inputs;
  for (const Argument& argument : problem.arguments) {
    if (argument.tensor && !argument.constant) inputs.push_back(*argument.tensor);
  }
  return inputs;
}

References reference(const Problem& problem, bool flush) {
  std::vector<Array> arrays(problem.arguments.size());
  std::vector<const Array*> inputs;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const std::optional<onnx::Tensor>& tensor = problem.arguments[i].tensor;
    if (tensor) arrays[i] = to_array(*tensor);
    inputs.push_back(tensor ? &arrays[i] : nullptr);
    if (!flush || !is_float(arrays[i].dtype)) continue;
    for (double& x : arrays[i].values) {
      if (std::fabs(x) < float_type(arrays[i].dtype).min_normal()) x = std::copysign(0, x);
    }
  }
  References results = compute(problem.op, Call(inputs, problem.attributes, problem.outputs));
  for (size_t i = problem.omitted.size(); i-- > 0;) {
    require(problem.omitted[i] < results.size(), "an omitted output does not exist");
    results.erase(results.begin() + static_cast<int64_t>(problem.omitted[i]));
  }
  for (Reference& result : results) {
    if (!problem.exact_sums) continue;
    result.rule = Rule::exact();  // the sums are exact, and rounded once to the output's type
    if (!is_float(result.value.dtype)) continue;
    for (double& x : result.value.values) x = float_type(result.value.dtype).round(x);
  }
  return results;
}

std::optional<GraphSpec> graph_of(const Problem& problem, const References& references, uint32_t opset) {
  const bool brain = std::any_of(problem.arguments.begin(), problem.arguments.end(), [](const Argument& argument) {
    return argument.tensor && argument.tensor->dtype == BP_DTYPE_BFLOAT16;
  });
  const Operator& op = find_operator(problem.op);
  // `opset` is a version of the ONNX domain; operators of other domains are in their newest form.
  std::vector<uint32_t> versions = op.versions;
  std::erase_if(versions, [&](uint32_t version) { return version < problem.since; });
  const std::optional<uint32_t> version =
      newest_form(versions, op.domain.empty() ? opset : UINT32_MAX, brain && op.domain.empty());
  if (!version) return std::nullopt;

  GraphSpec graph{.opset = opset};
  NodeSpec node{.op_type = std::string(op.op_type()),
                .domain = std::string(op.domain),
                .since_version = *version,
                .attributes = problem.attributes};
  drop_newer_attributes(problem.op, *version, node.attributes);
  for (const Argument& argument : problem.arguments) {
    if (!argument.tensor) {
      node.inputs.push_back(BP_NONE);
      continue;
    }
    const auto value = static_cast<uint32_t>(graph.values.size());
    graph.values.push_back({argument.tensor->dtype, argument.tensor->extents, {}});
    if (argument.constant)
      graph.values.back().weight = argument.tensor;
    else
      graph.inputs.push_back(value);
    node.inputs.push_back(value);
  }
  for (const Reference& reference : references) {
    while (std::ranges::binary_search(problem.omitted, node.outputs.size())) node.outputs.push_back(BP_NONE);
    const auto value = static_cast<uint32_t>(graph.values.size());
    graph.values.push_back({reference.value.dtype, reference.value.extents, {}});
    graph.outputs.push_back(value);
    node.outputs.push_back(value);
  }
  graph.nodes.push_back(std::move(node));
  return graph;
}

namespace {

// Orders answers from the best to the worst: right, wrong but close, mistrusted, wrong. L1 accepts the first two.
int badness(const Judgement& judgement) {
  switch (judgement.answer) {
    case Judgement::kRight:
      return 0;
    case Judgement::kMistrusted:
      return 2;
    default:
      return judgement.close ? 1 : 3;
  }
}

}  // namespace

Judgement judge_all(const Problem& problem, const References& references, const std::vector<onnx::Tensor>& seen,
                    bool flushes) {
  const auto judge_against = [&](const References& expected) {
    Judgement worst;
    Histogram errors = {};  // of all outputs
    double largest = 0;     // the largest error of all outputs, as a fraction of its bound
    for (size_t i = 0; i < expected.size(); ++i) {
      Judgement one = judge(expected[i], seen.at(i), {flushes, problem.drawn_around_zero});
      for (size_t bucket = 0; bucket < errors.size(); ++bucket) errors[bucket] += one.errors[bucket];
      largest = std::max(largest, one.worst);
      if (std::pair(badness(one), one.worst) > std::pair(badness(worst), worst.worst)) worst = std::move(one);
    }
    worst.errors = errors;
    worst.worst = largest;
    return worst;
  };
  Judgement judgement = judge_against(references);
  if (flushes && judgement.answer != Judgement::kRight) return judge_against(reference(problem, true));
  return judgement;
}

}  // namespace backplane::conform

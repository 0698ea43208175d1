// SPDX-License-Identifier: Apache-2.0
// The bound of a graph follows from the bounds of its operators, node by node.
//
// Let y = f(x) be the exact result of a node, and x' the device's value of x, with |x' - x| <= e(x) for each element.
// The device's result y' is within the operator's bound b of f(x'), so
//
//   |y' - y| <= |f(x') - f(x)| + |y' - f(x')| <= s + b
//
// Here s is the largest change of f over the box x ± e(x). error_propagation.cpp derives s for each operator. For
// operators that only move data, s is e moved in the same way. For products and sums of products it is |a|·e(b) +
// e(a)·|b| + e(a)·e(b). For monotonic functions it is the change at the ends of the interval. For other functions it
// follows from a Lipschitz constant, or from a derivation in error_propagation.cpp. None of these is a first-order
// approximation. The bound b is that of the rule at |y| + s, with a scale that is larger by s. A margin of 1/64 is
// added, because bounds also grow with the rule's argument, though only slightly in graphs with useful bounds.
//
// The mean square is bounded in the same way. By Minkowski's inequality, the root mean square of a sum of errors is at
// most the sum of their root mean squares, even if the errors are not independent. So the same s, computed from typical
// errors, bounds typical errors. The typical error of a dot product is √(1.6·ksb)·u instead of its worst case 2·ksb·u.
// All other rules promise nothing about the mean, so they contribute b itself. In addition to the bound of each
// element, Σ(err / typical)² must be at most T over T elements.
//
// The mean error is meaningful only for graphs whose errors are symmetric around zero: see checks/graph.cpp.
#include "judge/estimate.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "judge/control.h"
#include "judge/error_propagation.h"

namespace backplane::conform {
namespace {

struct Own {
  double worst, typical;
};
// The error that the node itself adds to an element whose value may already differ by `error`.
Own own_error(const Rule& rule, const FloatType& type, double value, double scale, double error) {
  const double at = std::fabs(value) + error, wide = scale + error, margin = 1 + 1.0 / 64;
  const double worst = bound(rule, type, at, wide) * margin;
  if (rule.kind != Rule::kDot) return {worst, worst};
  const double ksb = piled_up(rule.terms, type, std::max(type.fraction_bits, 23));
  return {worst, std::min(worst, std::sqrt(1.6 * ksb) * dot_unit(type, wide) * margin)};
}

}  // namespace

Reference Estimate::reference() const {
  Reference result(value, Rule::of(Rule::kGraph));
  result.scale = error;
  result.typical = typical;
  return result;
}

std::vector<Estimate> estimate(const NodeSpec& node, const std::vector<const Estimate*>& inputs, bool flushes) {
  const ErrorPropagation propagate = find_error_propagation(node.op_type);
  if (propagate == nullptr)
    throw std::invalid_argument("no error propagation is known for operator '" + node.op_type + "'");
  std::vector<const Array*> arrays;
  Errors errors, typical;
  for (const Estimate* input : inputs) {
    arrays.push_back(input == nullptr ? nullptr : &input->value);
    const auto moves = [](const std::vector<double>& e) {
      return std::any_of(e.begin(), e.end(), [](double x) { return x != 0; });
    };
    errors.push_back(input != nullptr && moves(input->error) ? input->error : std::vector<double>());
    typical.push_back(input != nullptr && moves(input->typical) ? input->typical : std::vector<double>());
  }
  const Call call(arrays, node.attributes, static_cast<uint32_t>(node.outputs.size()));
  References results = compute(node.op_type, call);
  const Errors far = propagate(node.op_type, call, errors, results),
               near = propagate(node.op_type, call, typical, results);

  std::vector<Estimate> outputs;
  for (size_t o = 0; o < results.size(); ++o) {
    const Reference& result = results[o];
    Estimate output{result.value, far[o], near[o]};
    if (result.rule.kind == Rule::kStep) {  // the rounded value is either certain or has an infinite error
      for (size_t i = 0; i < output.error.size(); ++i) {
        double& value = output.value.values[i];
        const double rounded = std::nearbyint(value), away = std::fabs(value - rounded) + result.scale[i];
        value = rounded;
        for (double* error : {&output.error[i], &output.typical[i]}) *error = away + *error < 0.5 ? 0 : HUGE_VAL;
      }
    }
    if (is_float(result.value.dtype)) {
      const FloatType& type = float_type(result.value.dtype);
      for (size_t i = 0; i < output.error.size(); ++i) {
        const double scale = result.scale.empty() ? 0 : result.scale[i];
        const Own own = own_error(result.rule, type, result.value.values[i], scale, output.error[i]);
        const double flushed = flushes ? type.min_normal() : 0;
        output.error[i] += own.worst + flushed;
        output.typical[i] += own.typical + flushed;
      }
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Estimate exact_estimate(const onnx::Tensor& tensor, bool flushes) {
  Array array = to_array(tensor);
  std::vector<double> errors(array.values.size(), 0.0);
  if (flushes && is_float(array.dtype)) {
    const double least = float_type(array.dtype).min_normal();
    for (size_t i = 0; i < errors.size(); ++i) {
      const double magnitude = std::fabs(array.values[i]);
      if (magnitude < least) errors[i] = magnitude;
    }
  }
  return {std::move(array), errors, errors};
}

void evaluate(const GraphSpec& graph, std::vector<Estimate>& values, bool flushes) {
  require(values.size() == graph.values.size(), "the number of values differs from the graph's");
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].weight) values[i] = exact_estimate(*graph.values[i].weight, flushes);
  }
  for (const NodeSpec& node : graph.nodes) {
    std::vector<const Estimate*> operands;
    for (const uint32_t input : node.inputs) {
      require(input == BP_NONE || input < values.size(), "a node reads a value that the graph does not have");
      require(input == BP_NONE || values[input].is_computed(), "a node reads a value that is not computed before it");
      operands.push_back(input == BP_NONE ? nullptr : &values[input]);
    }
    const Control control = find_control(node.op_type);
    std::vector<Estimate> outputs =
        control == nullptr ? estimate(node, operands, flushes) : control(node, operands, values, flushes);
    require(outputs.size() >= node.outputs.size(), "a node has more outputs than its operator or body computes");
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      require(node.outputs[o] == BP_NONE || node.outputs[o] < values.size(),
              "a node returns a value that the graph does not have");
      if (node.outputs[o] != BP_NONE) values[node.outputs[o]] = std::move(outputs[o]);
    }
  }
}

std::vector<Estimate> estimate(const GraphSpec& graph, const std::vector<onnx::Tensor>& inputs, bool flushes) {
  std::vector<Estimate> values(graph.values.size());
  require(inputs.size() == graph.inputs.size(), "the number of tensors differs from that of graph inputs");
  for (size_t i = 0; i < inputs.size(); ++i) {
    require(graph.inputs[i] < values.size(), "an input is a value that the graph does not have");
    values[graph.inputs[i]] = exact_estimate(inputs[i], flushes);
  }
  evaluate(graph, values, flushes);
  return values;
}

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// Estimates of nodes with bodies. Errors accumulate from step to step, as in a chain of nodes.
#include "judge/control.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "judge/estimate.h"

namespace backplane::conform {
namespace {

template <class T>
T attribute_of(const NodeSpec& node, std::string_view name, T otherwise) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name != name) continue;
    const T* value = std::get_if<T>(&attribute.value);
    require(value != nullptr, "an attribute has another type");
    return *value;
  }
  return otherwise;
}

const GraphSpec& body_of(const NodeSpec& node, std::string_view name) {
  const auto body = attribute_of<std::shared_ptr<const GraphSpec>>(node, name, nullptr);
  if (body == nullptr) throw std::invalid_argument("a node has no body '" + std::string(name) + "'");
  return *body;
}

std::vector<Estimate> run_body(const GraphSpec& body, const std::vector<Estimate>& inputs,
                               const std::vector<Estimate>& around, bool flushes) {
  std::vector<Estimate> values(body.values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t outer = body.values[i].outer;
    require(outer == BP_NONE || outer < around.size(), "a body reads a value that the outer graph does not have");
    if (outer != BP_NONE) values[i] = around[outer];
  }
  require(inputs.size() == body.inputs.size(), "a body's number of inputs differs from what it receives");
  for (size_t i = 0; i < inputs.size(); ++i) {
    require(body.inputs[i] < values.size(), "an input of a body is a value that the body does not have");
    values[body.inputs[i]] = inputs[i];
  }
  evaluate(body, values, flushes);
  std::vector<Estimate> outputs;
  for (const uint32_t output : body.outputs) {
    require(output < values.size(), "an output of a body is a value that the body does not have");
    require(values[output].is_computed(), "an output of a body is not computed");
    outputs.push_back(values[output]);
  }
  return outputs;
}

// Returns NULL if the input is omitted.
const Estimate* input_of(const std::vector<const Estimate*>& inputs, size_t i) {
  return i < inputs.size() ? inputs[i] : nullptr;
}
const Estimate& needed(const Estimate* input) {
  require(input != nullptr, "an input of a node with bodies is missing");
  return *input;
}

// Returns the only element. Throws if its error is not 0, because then the value is not certain.
double single(const Estimate& value) {
  require(value.value.count() == 1 && value.error.size() == 1, "a condition or a count is not one element");
  require(value.error[0] == 0, "the value of a condition or a count is not certain");
  return value.value.values[0];
}
bool decision(const Estimate& condition) {
  return single(condition) != 0;
}

Estimate whole_number(int64_t value) {
  Array array(BP_DTYPE_INT64, {});
  array.values[0] = static_cast<double>(value);
  return exact_estimate(to_tensor(array));
}
Estimate truth(bool value) {
  Array array(BP_DTYPE_BOOL, {});
  array.values[0] = value;
  return exact_estimate(to_tensor(array));
}

// Returns entry `i` along axis 0. The inverse, `stacked`, stacks entries along a new axis 0.
Estimate entry(const Estimate& whole, int64_t i) {
  require(whole.value.rank() > 0 && i < whole.value.extents[0],
          "a scanned input has no axis 0, or is shorter than the first");
  const Extents inner(whole.value.extents.begin() + 1, whole.value.extents.end());
  const auto size = static_cast<size_t>(count_of(inner));
  Estimate part{Array(whole.value.dtype, inner), std::vector<double>(size), std::vector<double>(size)};
  const auto from = static_cast<int64_t>(size) * i;
  std::copy_n(whole.value.values.begin() + from, size, part.value.values.begin());
  std::copy_n(whole.error.begin() + from, size, part.error.begin());
  std::copy_n(whole.typical.begin() + from, size, part.typical.begin());
  return part;
}
Estimate stacked(const std::vector<Estimate>& parts, const ValueSpec& like) {
  Extents extents = parts.empty() ? like.extents : parts[0].value.extents;
  extents.insert(extents.begin(), static_cast<int64_t>(parts.size()));
  Estimate whole{Array(like.dtype, extents), {}, {}};
  whole.value.values.clear();
  for (const Estimate& part : parts) {
    require(part.value.extents == parts[0].value.extents, "a collected value differs in shape between steps");
    whole.value.values.insert(whole.value.values.end(), part.value.values.begin(), part.value.values.end());
    whole.error.insert(whole.error.end(), part.error.begin(), part.error.end());
    whole.typical.insert(whole.typical.end(), part.typical.begin(), part.typical.end());
  }
  return whole;
}

std::vector<Estimate> run_if(const NodeSpec& node, const std::vector<const Estimate*>& inputs,
                             const std::vector<Estimate>& around, bool flushes) {
  const bool holds = decision(needed(input_of(inputs, 0)));
  return run_body(body_of(node, holds ? "then_branch" : "else_branch"), {}, around, flushes);
}

// The inputs are the trip count, the initial condition and the carried values. The body takes the iteration number, the
// condition and the carried values. It returns the condition, the carried values and the values to collect.
std::vector<Estimate> run_loop(const NodeSpec& node, const std::vector<const Estimate*>& inputs,
                               const std::vector<Estimate>& around, bool flushes) {
  const GraphSpec& body = body_of(node, "body");
  const Estimate *most = input_of(inputs, 0), *condition = input_of(inputs, 1);
  const double limit = most == nullptr ? HUGE_VAL : single(*most);
  bool goes_on = condition == nullptr || decision(*condition);
  std::vector<Estimate> carried;
  for (size_t i = 2; i < inputs.size(); ++i) carried.push_back(needed(inputs[i]));
  require(body.outputs.size() > carried.size(), "a loop's body does not return a condition and every carried value");
  std::vector<std::vector<Estimate>> collected(body.outputs.size() - 1 - carried.size());
  for (int64_t step = 0; static_cast<double>(step) < limit && goes_on; ++step) {
    require(step < kMaxLoopSteps, "a loop has more steps than the oracle supports");
    std::vector<Estimate> given = {whole_number(step), truth(goes_on)};
    given.insert(given.end(), carried.begin(), carried.end());
    const std::vector<Estimate> results = run_body(body, given, around, flushes);
    goes_on = decision(results[0]);
    std::copy_n(results.begin() + 1, carried.size(), carried.begin());
    for (size_t i = 0; i < collected.size(); ++i) collected[i].push_back(results[1 + carried.size() + i]);
  }
  std::vector<Estimate> outputs = carried;
  for (size_t i = 0; i < collected.size(); ++i) {
    const uint32_t one = body.outputs[1 + carried.size() + i];
    require(one < body.values.size(), "an output of a body is a value that the body does not have");
    outputs.push_back(stacked(collected[i], body.values[one]));
  }
  return outputs;
}

// The inputs are the carried values, then the tensors that are scanned along axis 0, forwards or (direction 1)
// backwards. The body takes the carried values and one entry of each tensor. It returns the carried values and the
// values to collect.
std::vector<Estimate> run_scan(const NodeSpec& node, const std::vector<const Estimate*>& inputs,
                               const std::vector<Estimate>& around, bool flushes) {
  const GraphSpec& body = body_of(node, "body");
  const auto scanned = static_cast<size_t>(attribute_of<int64_t>(node, "num_scan_inputs", 0));
  require(scanned >= 1 && scanned <= inputs.size() && inputs.size() - scanned <= body.outputs.size(),
          "num_scan_inputs is not from 1 to the number of inputs, or leaves more states than the body has outputs");
  for (const Estimate* input : inputs) needed(input);
  const size_t states = inputs.size() - scanned, collects = body.outputs.size() - states;
  const Extents in_ways = attribute_of(node, "scan_input_directions", Extents(scanned, 0)),
                out_ways = attribute_of(node, "scan_output_directions", Extents(collects, 0));
  require(in_ways.size() == scanned && out_ways.size() == collects,
          "the number of directions differs from that of scanned values");
  require(attribute_of(node, "scan_input_axes", Extents(scanned, 0)) == Extents(scanned, 0) &&
              attribute_of(node, "scan_output_axes", Extents(collects, 0)) == Extents(collects, 0),
          "the oracle supports only scans along axis 0, given as one 0 for each scanned value");
  const Extents& first = inputs[states]->value.extents;
  require(!first.empty() && first[0] <= kMaxLoopSteps,
          "a scanned input has no axis 0, or more steps than the oracle supports");
  const int64_t length = first[0];
  std::vector<Estimate> carried;
  for (size_t i = 0; i < states; ++i) carried.push_back(*inputs[i]);
  std::vector<std::vector<Estimate>> collected(collects);
  for (int64_t step = 0; step < length; ++step) {
    std::vector<Estimate> given = carried;
    for (size_t i = 0; i < scanned; ++i) {
      given.push_back(entry(*inputs[states + i], in_ways[i] == 0 ? step : length - 1 - step));
    }
    const std::vector<Estimate> results = run_body(body, given, around, flushes);
    std::copy_n(results.begin(), states, carried.begin());
    for (size_t i = 0; i < collects; ++i) {
      collected[i].insert(out_ways[i] == 0 ? collected[i].end() : collected[i].begin(), results[states + i]);
    }
  }
  std::vector<Estimate> outputs = carried;
  for (size_t i = 0; i < collects; ++i) {
    require(body.outputs[states + i] < body.values.size(),
            "an output of a body is a value that the body does not have");
    outputs.push_back(stacked(collected[i], body.values[body.outputs[states + i]]));
  }
  return outputs;
}

const ControlOperator kOperators[] = {
    {"If", {16, 19, 21, 23, 24, 25}, run_if},
    {"Loop", {16, 19, 21, 23, 24, 25}, run_loop},
    {"Scan", {16, 19, 21, 23, 24, 25}, run_scan},
};

}  // namespace

std::span<const ControlOperator> control_operators() {
  return kOperators;
}

Control find_control(std::string_view op) {
  for (const ControlOperator& one : kOperators) {
    if (one.name == op) return one.compute;
  }
  return nullptr;
}

}  // namespace backplane::conform

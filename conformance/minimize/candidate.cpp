// SPDX-License-Identifier: Apache-2.0
#include "minimize/candidate.h"

#include <algorithm>
#include <stdexcept>

#include "judge/estimate.h"
#include "onnx/number.h"

namespace backplane::conform {
namespace {

bool is_plain(double x) {
  return x == 0 || x == 1;
}

uint64_t irregularities_of(const Attribute& attribute) {
  const auto odd = [](const auto& list) {
    return std::count_if(list.begin(), list.end(), [](auto x) { return !is_plain(x); });
  };
  if (const auto* i = std::get_if<int64_t>(&attribute.value)) return !is_plain(static_cast<double>(*i));
  if (const auto* f = std::get_if<float>(&attribute.value)) return !is_plain(*f);
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) return odd(*ints);
  if (const auto* floats = std::get_if<std::vector<float>>(&attribute.value)) return odd(*floats);
  return 0;
}

uint64_t irregularities_of(const onnx::Tensor& tensor) {
  if (!onnx::is_inexact(tensor.dtype)) return 0;
  uint64_t odd = 0;
  for (uint64_t i = 0; i < tensor.count(); ++i) odd += !is_plain(onnx::number_at(tensor, i).real());
  return odd;
}

std::vector<bool> needed_nodes(const GraphSpec& graph) {
  std::vector<bool> value(graph.values.size()), node(graph.nodes.size());
  for (const uint32_t output : graph.outputs) value[output] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const NodeSpec& one = graph.nodes[i];
    node[i] = std::any_of(one.outputs.begin(), one.outputs.end(), [&](uint32_t v) { return v != BP_NONE && value[v]; });
    if (!node[i]) continue;
    for (const uint32_t input : one.inputs) {
      if (input != BP_NONE) value[input] = true;
    }
  }
  return node;
}

// Keeps the needed nodes and the values that they read or write, and renumbers the values.
void drop_the_rest(Network& candidate) {
  const GraphSpec& old = candidate.spec;
  const std::vector<bool> needed = needed_nodes(old);
  std::vector<uint32_t> number(old.values.size(), BP_NONE);
  GraphSpec graph{.opset = old.opset};
  const auto keep = [&](uint32_t& value) {
    if (value == BP_NONE) return;
    if (number[value] == BP_NONE) {
      number[value] = static_cast<uint32_t>(graph.values.size());
      graph.values.push_back(old.values[value]);
    }
    value = number[value];
  };
  for (size_t i = 0; i < old.nodes.size(); ++i) {
    if (!needed[i]) continue;
    graph.nodes.push_back(old.nodes[i]);
    for (uint32_t& input : graph.nodes.back().inputs) keep(input);
    for (uint32_t& output : graph.nodes.back().outputs) keep(output);
  }
  std::vector<onnx::Tensor> inputs;
  for (size_t i = 0; i < old.inputs.size(); ++i) {
    if (number[old.inputs[i]] == BP_NONE) continue;
    graph.inputs.push_back(number[old.inputs[i]]);
    inputs.push_back(std::move(candidate.inputs[i]));
  }
  for (uint32_t output : old.outputs) {
    keep(output);
    graph.outputs.push_back(output);
  }
  candidate = {std::move(graph), std::move(inputs)};
}

// True if every output is computed by a node, and every input of a node is available before that node.
bool is_whole(const GraphSpec& graph) {
  std::vector<bool> there(graph.values.size()), computed(graph.values.size());
  for (size_t i = 0; i < there.size(); ++i) there[i] = graph.values[i].weight.has_value();
  for (const uint32_t input : graph.inputs) there[input] = true;
  for (const NodeSpec& node : graph.nodes) {
    for (const uint32_t input : node.inputs) {
      if (input != BP_NONE && !there[input]) return false;
    }
    for (const uint32_t output : node.outputs) {
      if (output != BP_NONE) there[output] = computed[output] = true;
    }
  }
  return !graph.outputs.empty() &&
         std::all_of(graph.outputs.begin(), graph.outputs.end(), [&](uint32_t output) { return computed[output]; });
}

}  // namespace

Size size_of(const Network& candidate) {
  Size size{.nodes = candidate.spec.nodes.size(), .values = candidate.spec.values.size()};
  for (const ValueSpec& value : candidate.spec.values) {
    uint64_t elements = 1;
    for (const int64_t extent : value.extents) elements *= static_cast<uint64_t>(extent);
    size.elements += elements + value.extents.size();
    if (value.weight) size.irregularities += irregularities_of(*value.weight);
  }
  for (const onnx::Tensor& input : candidate.inputs) size.irregularities += irregularities_of(input);
  for (const NodeSpec& node : candidate.spec.nodes) {
    for (const Attribute& attribute : node.attributes) size.irregularities += irregularities_of(attribute);
  }
  return size;
}

bool recompute(Network& candidate) {
  drop_the_rest(candidate);
  GraphSpec& graph = candidate.spec;
  if (!is_whole(graph)) return false;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    graph.values[graph.inputs[i]] = {candidate.inputs[i].dtype, candidate.inputs[i].extents, {}};
  }
  try {
    const std::vector<Estimate> estimates = estimate(graph, candidate.inputs, false);
    for (const NodeSpec& node : graph.nodes) {
      for (const uint32_t output : node.outputs) {
        if (output == BP_NONE) continue;
        graph.values[output] = {estimates[output].value.dtype, estimates[output].value.extents, {}};
      }
    }
    return true;
  } catch (const std::exception&) {
    return false;  // usually because shapes no longer fit
  }
}

std::vector<onnx::Tensor> computed_values(const Network& candidate) {
  std::vector<onnx::Tensor> values(candidate.spec.values.size());
  const std::vector<Estimate> estimates = estimate(candidate.spec, candidate.inputs, false);
  for (const NodeSpec& node : candidate.spec.nodes) {
    for (const uint32_t output : node.outputs) {
      if (output != BP_NONE) values[output] = to_tensor(estimates[output].value);
    }
  }
  return values;
}

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
#include "cases/network.h"

#include <algorithm>
#include <map>

#include "cases/graph_sampler.h"
#include "cases/node_samplers.h"

namespace backplane::conform {

Network random_network(Random& random, const Recipe& recipe, uint32_t opset) {
  GraphSampler sampler(random, recipe, opset);
  std::vector<const NodeSampler*> lots;
  for (const NodeSampler& maker : node_samplers()) {
    if (maker.linear || !recipe.linear) lots.insert(lots.end(), maker.weight, &maker);
  }
  while (sampler.node_count() < recipe.nodes) {
    sampler.start();
    if (!sampler.one_of(lots)->make(sampler)) sampler.undo();
  }
  return std::move(sampler).finish();
}

namespace {

// The graph of `nodes`, in order. Its inputs are the values that it reads from the rest of the network, set to their
// estimates.
Network cut(const Network& network, const std::vector<Estimate>& estimates, const std::vector<const NodeSpec*>& nodes) {
  Network part;
  part.spec.opset = network.spec.opset;
  std::map<uint32_t, uint32_t> names;  // from the index of a value in the network to its index in the part
  const auto value_of = [&](uint32_t value) {
    const auto [found, is_new] = names.emplace(value, static_cast<uint32_t>(part.spec.values.size()));
    if (is_new) part.spec.values.push_back(network.spec.values[value]);
    return found->second;
  };
  for (const NodeSpec* node : nodes) {
    NodeSpec copy = *node;
    for (uint32_t& input : copy.inputs) {
      if (input == BP_NONE) continue;
      const bool outside = !names.contains(input) && !network.spec.values[input].weight;
      const uint32_t own = value_of(input);
      if (outside) {
        part.spec.inputs.push_back(own);
        part.inputs.push_back(to_tensor(estimates[input].value));
      }
      input = own;
    }
    for (uint32_t& output : copy.outputs) output = output == BP_NONE ? BP_NONE : value_of(output);
    part.spec.nodes.push_back(std::move(copy));
  }
  // The outputs are the values that the network outputs or that nodes outside this part read.
  for (const NodeSpec* node : nodes) {
    for (const uint32_t output : node->outputs) {
      if (output == BP_NONE) continue;
      const auto reads = [&](const NodeSpec& other) {
        return std::find(nodes.begin(), nodes.end(), &other) == nodes.end() &&
               std::find(other.inputs.begin(), other.inputs.end(), output) != other.inputs.end();
      };
      const std::vector<uint32_t>& given = network.spec.outputs;
      if (std::find(given.begin(), given.end(), output) != given.end() ||
          std::any_of(network.spec.nodes.begin(), network.spec.nodes.end(), reads)) {
        part.spec.outputs.push_back(names.at(output));
      }
    }
  }
  return part;
}

}  // namespace

std::vector<Network> islands(const Network& network, const std::vector<bool>& mask) {
  // A node's level is the largest number of changes between allowed and not allowed on any path to it. A path that
  // leaves a level never returns to it, so the allowed nodes of one level form a convex set.
  std::vector<uint32_t> producer(network.spec.values.size(), BP_NONE), level(network.spec.nodes.size());
  std::map<uint32_t, std::vector<const NodeSpec*>> levels;
  for (uint32_t n = 0; n < network.spec.nodes.size(); ++n) {
    const NodeSpec& node = network.spec.nodes[n];
    for (const uint32_t input : node.inputs) {
      const uint32_t before = input == BP_NONE ? BP_NONE : producer[input];
      if (before != BP_NONE) level[n] = std::max(level[n], level[before] + (mask[before] != mask[n] ? 1 : 0));
    }
    for (const uint32_t output : node.outputs) {
      if (output != BP_NONE) producer[output] = n;
    }
    if (mask[n]) levels[level[n]].push_back(&node);
  }
  std::vector<Network> parts;
  const std::vector<Estimate> estimates = estimate(network.spec, network.inputs, false);
  for (const auto& [number, nodes] : levels) parts.push_back(cut(network, estimates, nodes));
  return parts;
}

}  // namespace backplane::conform

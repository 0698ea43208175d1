// SPDX-License-Identifier: Apache-2.0
// Shared by the placement tests: fake devices, graphs and verdicts.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>

#include "discover/negotiate.h"
#include "place/place.h"

namespace backplane::placement_test {

// Devices that consist only of names and speeds, because placement never calls them. The first works on host memory;
// the others have their own memory.
struct FakeDevices {
  explicit FakeDevices(uint32_t count, uint64_t launch_ns = 0, uint64_t memory_bytes = 0) {
    backend.id = "fake";
    backend.tables->plugin.memory = &backend.tables->memory;
    for (uint32_t d = 0; d < count; ++d) {
      bp_device_info_t info{};
      info.index = d;
      info.kind = d == 0 ? BP_DEVICE_CPU : BP_DEVICE_GPU;
      info.launch_ns = launch_ns;
      info.link_bandwidth = 1'000'000'000;
      info.memory_bytes = memory_bytes;
      devices.push_back(
          std::make_unique<Device>(backend, d + 1, std::string(1, static_cast<char>('a' + d)), info, count));
    }
  }

  std::vector<DeviceCoverage> coverage(size_t nodes) const {
    std::vector<DeviceCoverage> all;
    for (const auto& device : devices) {
      DeviceCoverage& one = all.emplace_back();
      one.device = device.get();
      one.nodes.resize(nodes);
      for (NodeVerdict& verdict : one.nodes) verdict.detail = "not listed";
    }
    return all;
  }

  Backend backend;
  std::vector<std::unique_ptr<Device>> devices;
};

inline void allow(NodeVerdict& verdict, double microseconds = 1) {
  verdict.answer = BP_ANSWER_YES;
  verdict.seconds = microseconds * 1e-6;
}

inline model::Type floats(int64_t count) {
  return {.kind = BP_KIND_TENSOR, .dtype = BP_DTYPE_FLOAT, .rank = 1, .dims = {{count, BP_NONE, 0}}};
}

inline model::Node& add_node(model::Graph& graph, const std::vector<model::ValueId>& inputs, uint32_t outputs,
                             int64_t elements) {
  model::Node& node = graph.nodes.emplace_back();
  node.op_type = "Op";
  node.name = "n" + std::to_string(graph.nodes.size() - 1);
  node.id = graph.nodes.size();
  node.inputs = inputs;
  for (uint32_t k = 0; k < outputs; ++k)
    node.outputs.push_back(graph.add_value("v" + std::to_string(graph.values.size()), floats(elements)));
  return node;
}

// Each node reads some of the values before it. Values have 4 bytes to 160 kB. At 1 GB/s, a copy takes up to 160 µs in
// addition to its latency of 10 µs.
inline model::Graph random_graph(std::mt19937& random, uint32_t nodes) {
  model::Graph graph;
  graph.inputs.push_back(graph.add_value("x", floats(1000)));
  const uint32_t window = 1 + random() % 20;
  for (uint32_t i = 0; i < nodes; ++i) {
    std::vector<model::ValueId> inputs;
    const uint32_t there = static_cast<uint32_t>(graph.values.size());
    for (uint32_t k = 0; k < 1 + random() % 3; ++k) inputs.push_back(there - 1 - random() % std::min(there, window));
    add_node(graph, inputs, 1 + random() % 2, 1 + random() % (random() % 2 ? 40 : 40'000));
  }
  graph.outputs.push_back(static_cast<model::ValueId>(graph.values.size() - 1));
  return graph;
}

inline model::Graph chain(uint32_t nodes, int64_t elements = 10) {
  model::Graph graph;
  graph.inputs.push_back(graph.add_value("x", floats(elements)));
  for (uint32_t i = 0; i < nodes; ++i)
    add_node(graph, {static_cast<model::ValueId>(graph.values.size() - 1)}, 1, elements);
  graph.outputs.push_back(static_cast<model::ValueId>(graph.values.size() - 1));
  return graph;
}

// At least one device supports each node; costs are random.
inline std::vector<DeviceCoverage> random_coverage(std::mt19937& random, const FakeDevices& devices, size_t nodes) {
  auto coverage = devices.coverage(nodes);
  const uint32_t share = 1 + random() % 9;
  for (size_t i = 0; i < nodes; ++i) {
    const uint32_t certain = random() % coverage.size();
    for (uint32_t d = 0; d < coverage.size(); ++d)
      if (d == certain || random() % 10 < share) allow(coverage[d].nodes[i], 1 + random() % 100);
  }
  return coverage;
}

// Checks that each island reads only inputs, weights and values written by earlier islands. This implies that islands
// are convex and their graph is acyclic.
inline void expect_legal(const model::Graph& graph, const Placement& placement) {
  std::set<model::ValueId> there(graph.inputs.begin(), graph.inputs.end());
  size_t nodes = 0;
  for (uint32_t k = 0; k < placement.islands.size(); ++k) {
    const Island& island = placement.islands[k];
    for (model::ValueId value : island.inputs) EXPECT_TRUE(there.contains(value)) << "island " << k;
    std::set<model::ValueId> inside(island.inputs.begin(), island.inputs.end());
    for (uint32_t i : island.nodes) {
      EXPECT_EQ(placement.device[i], island.device);
      EXPECT_EQ(placement.island[i], k);
      for (model::ValueId value : graph.nodes[i].inputs) EXPECT_TRUE(inside.contains(value));
      for (model::ValueId value : graph.nodes[i].outputs) inside.insert(value);
      ++nodes;
    }
    for (model::ValueId value : island.outputs) EXPECT_TRUE(inside.contains(value));
    there.insert(island.outputs.begin(), island.outputs.end());
  }
  EXPECT_EQ(nodes, graph.nodes.size());
  for (model::ValueId value : graph.outputs) EXPECT_TRUE(there.contains(value));
}

}  // namespace backplane::placement_test

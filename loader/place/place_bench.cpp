// SPDX-License-Identifier: Apache-2.0
// Benchmarks placement, with the verdicts of fake devices.
#include <benchmark/benchmark.h>

#include <memory>
#include <random>

#include "discover/negotiate.h"
#include "place/place.h"

namespace backplane {
namespace {

struct FakeDevices {
  explicit FakeDevices(uint32_t count) {
    backend.id = "fake";
    backend.tables->plugin.memory = &backend.tables->memory;
    for (uint32_t d = 0; d < count; ++d) {
      bp_device_info_t info{};
      info.index = d;
      info.kind = d == 0 ? BP_DEVICE_CPU : BP_DEVICE_GPU;
      info.launch_ns = 5'000;
      info.link_bandwidth = 10'000'000'000;
      devices.push_back(std::make_unique<Device>(backend, d + 1, "d" + std::to_string(d), info, count));
    }
  }

  // `answer(device, node)` returns microseconds, or 0 if the device does not support the node.
  std::vector<DeviceCoverage> answers(size_t nodes, const auto& answer) const {
    std::vector<DeviceCoverage> all;
    for (uint32_t d = 0; d < devices.size(); ++d) {
      DeviceCoverage& one = all.emplace_back();
      one.device = devices[d].get();
      one.nodes.resize(nodes);
      for (uint32_t i = 0; i < nodes; ++i) {
        const double microseconds = answer(d, i);
        if (microseconds == 0) {
          one.nodes[i].detail = "operator is not known";
          continue;
        }
        one.nodes[i].answer = BP_ANSWER_YES;
        one.nodes[i].seconds = microseconds * 1e-6;
      }
    }
    return all;
  }

  Backend backend;
  std::vector<std::unique_ptr<Device>> devices;
};

// Each node reads the one before it. On average, one node in `branching` also reads one of the last 20 values. Each
// value is 4 kB in size.
model::Graph make_graph(uint32_t nodes, uint32_t branching) {
  std::mt19937 random(1);
  const model::Type type{.kind = BP_KIND_TENSOR, .dtype = BP_DTYPE_FLOAT, .rank = 1, .dims = {{1000, BP_NONE, 0}}};
  model::Graph graph;
  graph.inputs.push_back(graph.add_value("x", type));
  for (uint32_t i = 0; i < nodes; ++i) {
    model::Node& node = graph.nodes.emplace_back();
    node.op_type = "Op";
    node.id = i + 1;
    node.inputs.push_back(i);
    if (branching && random() % branching == 0) node.inputs.push_back(i - random() % std::min(i + 1, 20u));
    node.outputs.push_back(graph.add_value("v" + std::to_string(i), type));
  }
  graph.outputs.push_back(nodes);
  return graph;
}

void run(benchmark::State& state, const model::Graph& graph, uint32_t count, const auto& answer) {
  const FakeDevices devices(count);
  size_t islands = 0;
  for (auto _ : state) {
    const auto coverage = devices.answers(graph.nodes.size(), answer);
    const auto placement = place(graph, coverage, {});
    if (!placement.ok()) return state.SkipWithError(std::string(placement.status().text()).c_str());
    islands = placement->islands.size();
  }
  state.counters["islands"] = static_cast<double>(islands);
  state.counters["us_per_node"] =
      benchmark::Counter(static_cast<double>(graph.nodes.size()) * 1e-6,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// A chain in which the two devices support pairs of nodes alternately.
void alternating(benchmark::State& state) {
  run(state, make_graph(2000, 0), 2, [](uint32_t d, uint32_t i) { return i / 2 % 2 == d ? 10.0 : 0.0; });
}

// The first device supports all nodes, each other device a node with probability 3/4. Costs are random.
void masks(benchmark::State& state) {
  run(state, make_graph(static_cast<uint32_t>(state.range(0)), 3), static_cast<uint32_t>(state.range(1)),
      [](uint32_t d, uint32_t i) {
        std::minstd_rand random(i * 8 + d + 1);
        random.discard(2);
        const auto draw = random();
        return d > 0 && draw % 4 == 0 ? 0.0 : (d == 0 ? 60.0 : 1.0) + static_cast<double>(draw / 4 % 60);
      });
}

// All devices support all nodes and none is clearly better, which makes the cut as hard as possible.
void undecided(benchmark::State& state) {
  run(state, make_graph(static_cast<uint32_t>(state.range(0)), 3), static_cast<uint32_t>(state.range(1)),
      [](uint32_t d, uint32_t i) {
        std::minstd_rand random(i * 8 + d + 1);
        random.discard(2);
        return 1.0 + static_cast<double>(random() % 60);
      });
}

// Like `undecided`, but every node reads two values.
void interleaved(benchmark::State& state) {
  run(state, make_graph(static_cast<uint32_t>(state.range(0)), 1), static_cast<uint32_t>(state.range(1)),
      [](uint32_t d, uint32_t i) {
        std::minstd_rand random(i * 8 + d + 1);
        random.discard(2);
        return 1.0 + static_cast<double>(random() % 60);
      });
}

// Like `interleaved`, but each half is slightly faster on a different device, so decisions depend on distant nodes.
void halves(benchmark::State& state) {
  const uint32_t nodes = static_cast<uint32_t>(state.range(0));
  run(state, make_graph(nodes, 1), static_cast<uint32_t>(state.range(1)),
      [&](uint32_t d, uint32_t i) { return (i / ((nodes + 1) / 2) % 2 == d % 2 ? 0.9 : 1.0) + 0.01 * d; });
}

// Like `interleaved`, but a copy costs at least 15 times as much as a node, which leads to few large islands.
void expensive(benchmark::State& state) {
  run(state, make_graph(static_cast<uint32_t>(state.range(0)), 1), static_cast<uint32_t>(state.range(1)),
      [](uint32_t d, uint32_t i) {
        std::minstd_rand random(i * 8 + d + 1);
        random.discard(2);
        return 0.1 + 0.01 * static_cast<double>(random() % 60);
      });
}

// Like `expensive`, but nodes cost ten times as much. Decisions depend on distant nodes, and several islands result.
void regional(benchmark::State& state) {
  run(state, make_graph(static_cast<uint32_t>(state.range(0)), 1), static_cast<uint32_t>(state.range(1)),
      [](uint32_t d, uint32_t i) {
        std::minstd_rand random(i * 8 + d + 1);
        random.discard(2);
        return 1.0 + 0.1 * static_cast<double>(random() % 60);
      });
}

BENCHMARK(alternating)->Unit(benchmark::kMillisecond);
BENCHMARK(masks)
    ->ArgNames({"nodes", "devices"})
    ->ArgsProduct({{1000, 10'000, 100'000}, {2, 4}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(undecided)
    ->ArgNames({"nodes", "devices"})
    ->ArgsProduct({{1000, 10'000, 100'000}, {2, 4}})
    ->Unit(benchmark::kMillisecond);

BENCHMARK(interleaved)
    ->ArgNames({"nodes", "devices"})
    ->ArgsProduct({{1000, 10'000, 100'000}, {2, 4}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(halves)
    ->ArgNames({"nodes", "devices"})
    ->ArgsProduct({{1000, 10'000, 100'000}, {2, 4}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(expensive)
    ->ArgNames({"nodes", "devices"})
    ->ArgsProduct({{1000, 10'000, 100'000}, {2, 4}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(regional)
    ->ArgNames({"nodes", "devices"})
    ->ArgsProduct({{1000, 10'000, 100'000}, {2, 4}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace backplane

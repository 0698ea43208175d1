// SPDX-License-Identifier: Apache-2.0
// For any graph, verdicts and costs, place() returns an error or a placement whose islands can run in their order.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>

#include "place/testing.h"

namespace {

using namespace backplane;
using namespace backplane::placement_test;

// Reads decisions from the fuzzer's bytes; returns 0 once they are used up.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  uint32_t next(uint32_t below) { return at_ == end_ ? 0 : *at_++ % below; }
  bool empty() const { return at_ == end_; }

 private:
  const uint8_t *at_, *end_;
};

double seconds(Bytes& bytes) {
  constexpr double kOdd[] = {0, -1, NAN, INFINITY, 1e300, 1e-300, std::numeric_limits<double>::denorm_min()};
  const uint32_t choice = bytes.next(64);
  return choice < std::size(kOdd) ? kOdd[choice] : choice * 1e-6;
}

bool is_legal(const model::Graph& graph, const Placement& placement) {
  std::set<model::ValueId> made(graph.inputs.begin(), graph.inputs.end());
  size_t nodes = 0;
  for (const Island& island : placement.islands) {
    for (const uint32_t i : island.nodes) {
      for (const model::ValueId value : graph.nodes[i].inputs)
        if (!made.contains(value)) return false;
      for (const model::ValueId value : graph.nodes[i].outputs) made.insert(value);
      ++nodes;
    }
  }
  return nodes == graph.nodes.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const FakeDevices devices(1 + bytes.next(4), bytes.next(3) * 1'000'000,
                            bytes.next(4) ? 0 : uint64_t{1} << bytes.next(20));
  Policy policy;
  policy.fallback = bytes.next(3);
  policy.max_islands = bytes.next(5);
  policy.max_island_nodes = bytes.next(6);
  model::Graph graph;
  graph.inputs.push_back(graph.add_value("x", floats(bytes.next(2) ? 1000 : std::numeric_limits<int64_t>::max())));
  for (uint32_t i = 0; !bytes.empty() && i < 200; ++i) {
    std::vector<model::ValueId> inputs;
    const auto known = static_cast<uint32_t>(graph.values.size());
    for (uint32_t k = bytes.next(4); k > 0; --k) inputs.push_back(known - 1 - bytes.next(256) % known);
    add_node(graph, inputs, 1 + bytes.next(3), bytes.next(2) ? int64_t{1} << bytes.next(62) : bytes.next(200));
  }
  graph.outputs.push_back(static_cast<model::ValueId>(graph.values.size() - 1));
  auto coverage = devices.coverage(graph.nodes.size());
  for (DeviceCoverage& device : coverage) {
    for (NodeVerdict& verdict : device.nodes) {
      if (bytes.next(4) == 3) continue;
      allow(verdict);
      verdict.seconds = seconds(bytes);
      verdict.bytes = bytes.next(16) ? bytes.next(200) : UINT64_MAX;
      verdict.part = bytes.next(8) ? 0 : bytes.next(3);
    }
  }
  const auto placed = place(graph, coverage, policy);
  if (placed.ok() && !is_legal(graph, *placed)) std::abort();
  return 0;
}

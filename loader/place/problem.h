// SPDX-License-Identifier: Apache-2.0
// The placement problem as indices and costs, for the stages of the search.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "coverage/coverage.h"
#include "ir/graph.h"
#include "place/cost.h"

namespace backplane {

// For each node, the index of its device in the coverage list.
using Assignment = std::vector<uint32_t>;

struct Problem {
  // A value, not a constant, that nodes read or that is an output of the graph. The value is copied once to each
  // device that reads it, and to the host if it is an output.
  struct Link {
    model::ValueId value;
    uint32_t producer;  // node, or BP_NONE for a value that comes from the host
    uint32_t first_reader, reader_count;
    bool to_host;
    double bytes;
  };
  // Nodes that a device supports only together, or runs faster together. A node is in at most one group of each device.
  struct Group {
    uint32_t device;
    std::vector<uint32_t> nodes;  // ascending
    bool atomic;                  // all nodes or none; the nodes' costs are shares of the group's cost
    double saving;                // if not atomic: how much cheaper the nodes are if all are in one island
  };

  uint32_t devices = 0;
  uint32_t nodes = 0;
  std::vector<double> seconds;       // [node * devices + device]; infinite if impossible
  std::vector<Link> links;           // by producer; links from the host come last
  std::vector<uint32_t> first_link;  // by node, index into `links`; one more entry marks the end
  std::vector<uint32_t> readers;     // the readers of all links, concatenated
  // Indexed as `seconds`, or empty; nodes of one device with different parts are never in one island.
  std::vector<uint32_t> parts;
  std::vector<CopyRate> copies;  // [from * (devices + 1) + to]; index `devices` is the host
  std::vector<double> launch;    // by device
  std::vector<Group> groups;
  std::vector<std::vector<uint32_t>> group_of;  // [device], empty or [node]: index in `groups` or BP_NONE
  // Called before each step of the search. It may throw, to end the search. May be empty.
  std::function<void()> before_step;

  uint32_t host() const { return devices; }
  double at(uint32_t node, uint32_t device) const { return seconds[size_t{node} * devices + device]; }
  bool can(uint32_t node, uint32_t device) const { return at(node, device) < kInfinite; }
  std::span<const uint32_t> readers_of(const Link& link) const {
    return {readers.data() + link.first_reader, link.reader_count};
  }
  double copy(uint32_t from, uint32_t to, double bytes) const {
    const CopyRate& rate = copies[from * (devices + 1) + to];
    return rate.seconds + bytes * rate.seconds_per_byte;
  }
  uint32_t group(uint32_t node, uint32_t device) const {
    return group_of[device].empty() ? BP_NONE : group_of[device][node];
  }
  // The device's atomic group that contains the node, or BP_NONE.
  uint32_t atomic_group(uint32_t node, uint32_t device) const {
    const uint32_t g = group(node, device);
    return g != BP_NONE && groups[g].atomic ? g : BP_NONE;
  }
  // Forbids the nodes of an atomic group on its device and empties the group.
  void ban(uint32_t group);
  // Whether another device can run the node. If the node is in an atomic group of `device`, whether each node of the
  // group can run on some other device.
  bool elsewhere(uint32_t node, uint32_t device) const;
  // Forbids the node on the device, or the whole atomic group that contains it.
  void exclude(uint32_t node, uint32_t device);

  static constexpr double kInfinite = __builtin_inf();
};

// Returns the links, costs and groups of a graph. Impossible groups are dropped (groups.h). For each node, `only`
// holds the one device that may run it, or BP_NONE if any may.
Problem make_problem(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage,
                     const std::vector<uint32_t>& only);

// Calls `visit` for each value of this graph that the node or its subgraphs read. May visit a value more than once.
template <class Visit>
void for_each_read(const model::Graph& graph, const model::Node& node, const Visit& visit) {
  for (model::ValueId value : node.inputs)
    if (value != BP_NONE) visit(value);
  for (const model::Attribute& attribute : node.attributes) {
    if (attribute.type != BP_ATTR_GRAPH && attribute.type != BP_ATTR_GRAPHS) continue;
    for (uint32_t index : attribute.indices())
      for (const model::Value& inner : graph.subgraphs[index]->values)
        if (inner.outer != BP_NONE) visit(inner.outer);
  }
}

}  // namespace backplane

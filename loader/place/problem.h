// SPDX-License-Identifier: Apache-2.0
// A placement as numbers: what the stages of the search work on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "coverage/coverage.h"
#include "ir/graph.h"
#include "place/cost.h"

namespace backplane {

// A device for each node: position in the coverage's list.
using Labels = std::vector<uint32_t>;

struct Problem {
  // A value that is read: each device that reads it gets it once, and so does the host where it is an output of the
  // graph.
  struct Link {
    model::ValueId value;
    uint32_t producer;  // node, or BP_NONE: it comes from the host
    uint32_t first_reader, reader_count;
    bool to_host;
    double bytes;
  };
  // Nodes that a device takes as one. A node is in one group of a device at most.
  struct Group {
    uint32_t device;
    std::vector<uint32_t> nodes;  // ascending
    bool atomic;                  // all or none; their costs are shares of the group's
    double saving;                // not atomic: what less it costs when all are in one island
  };

  uint32_t devices = 0;
  uint32_t nodes = 0;
  std::vector<double> seconds;       // node * devices + device; infinite where it can't be
  std::vector<Link> links;           // by producer; those from the host last
  std::vector<uint32_t> first_link;  // of each node, and the end
  std::vector<uint32_t> readers;     // of links
  std::vector<uint32_t> parts;       // as `seconds`, or empty: nodes of a device with different parts share no island
  std::vector<CopyRate> copies;      // from * (devices + 1) + to; number `devices` is the host
  std::vector<double> launch;        // of each device
  std::vector<Group> groups;
  std::vector<std::vector<uint32_t>> group_of;  // [device], empty or [node]: position in `groups` or BP_NONE

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
  // The atomic group that the node is in on the device, or BP_NONE.
  uint32_t atomic_group(uint32_t node, uint32_t device) const {
    const uint32_t g = group(node, device);
    return g != BP_NONE && groups[g].atomic ? g : BP_NONE;
  }
  // Makes the nodes of an atomic group impossible on its device.
  void ban(uint32_t group);
  // Whether other devices can have what the device takes with the node: its atomic group, or the node alone.
  bool elsewhere(uint32_t node, uint32_t device) const;
  // Makes that impossible on the device.
  void give_up(uint32_t node, uint32_t device);

  static constexpr double kInfinite = __builtin_inf();
};

// Links, costs and groups of a graph. Groups that are not sound (see groups.h) are left out. `only` has for each node
// the one device on which it may be, or BP_NONE.
Problem make_problem(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage,
                     const std::vector<uint32_t>& only);

// Calls `visit` for each value of this graph that the node reads, those of its sub-graphs included; some more than
// once.
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

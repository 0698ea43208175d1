// SPDX-License-Identifier: Apache-2.0
// Graphs of several operators, shared with code that examines cases of the group `graph`.
#pragma once

#include "cases/network.h"
#include "checks/remote.h"

namespace backplane::conform {

// The graphs that a case graph/5/… or graph/40/… would run if the device claimed every node. Empty for other cases:
// bias cases, which run one graph many times, and graphs cut from models or written by hand.
std::vector<Network> networks_of(std::string_view case_name, uint64_t seed, uint32_t opset);

// Returns for each node whether it may run. About half of the masks allow all nodes; the others exclude some at random,
// so that islands begin and end anywhere. At least one node is allowed.
std::vector<bool> draw_mask(Random& random, size_t nodes);
// Runs the nodes that `mask` allows and the device claims, and compares all outputs.
Result run_claimed(RemoteDevice& device, const Network& network, std::vector<bool> mask);
// Runs all nodes that the device claims, and compares all outputs.
Result judge_network(RemoteDevice& device, const Network& network);

}  // namespace backplane::conform

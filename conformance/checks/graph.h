// SPDX-License-Identifier: Apache-2.0
// Graphs of several operators, for code that examines cases of the group `graph`.
#pragma once

#include "cases/network.h"
#include "checks/remote.h"

namespace backplane::conform {

// The graphs that a random case runs if the device claims every node; empty for any other case.
std::vector<Network> networks_of(std::string_view case_name, uint64_t seed, uint32_t opset);

// Leaves out some nodes in half of the graphs, so that pieces begin and end anywhere; at least one node remains.
std::vector<bool> draw_mask(Random& random, size_t nodes);
// Runs what the device claims of the nodes that `mask` allows and compares all outputs.
Result run_claimed(RemoteDevice& device, const Network& network, std::vector<bool> mask);
// Runs and compares all nodes that the device claims.
Result judge_network(RemoteDevice& device, const Network& network);

}  // namespace backplane::conform

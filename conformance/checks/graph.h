// SPDX-License-Identifier: Apache-2.0
// Graphs of several operators, for those who look closer at a case of the group `graph`.
#pragma once

#include "cases/network.h"
#include "checks/remote.h"

namespace backplane::conform {

// What a case gives the device to run, one after the other, if it claims every node; none if the case compares no
// values.
std::vector<Network> networks_of(std::string_view case_name, uint64_t seed, uint32_t opset);

// Half of the graphs lose nodes to a mask, so that their pieces begin and end anywhere; one node is always left.
std::vector<bool> draw_mask(Random& random, size_t nodes);
// Runs what the device claims of the nodes that `mask` allows and compares all outputs.
Result run_claimed(RemoteDevice& device, const Network& network, std::vector<bool> mask);
// The same of all nodes.
Result judge_network(RemoteDevice& device, const Network& network);

}  // namespace backplane::conform

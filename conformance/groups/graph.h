// SPDX-License-Identifier: Apache-2.0
// Graphs of several operators, for those who look closer at a case of the group `graph`.
#pragma once

#include "cases/network.h"
#include "groups/group.h"

namespace backplane::conform {

// What a case gives the device to run, one after the other, if it claims every node; none if the case compares no
// values.
std::vector<Network> networks_of(std::string_view case_name, uint64_t seed, uint32_t opset);

// Runs what the device claims of a network and compares all outputs.
Result judge_network(Bench& bench, const Network& network);

}  // namespace backplane::conform

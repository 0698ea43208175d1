// SPDX-License-Identifier: Apache-2.0
// Adds a node's name to failures in it.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include "backplane/plugin.h"
#include "backplane/sdk/fence.hpp"

namespace backplane::cpu {

// Returns a node's operator and its name, or its number if it has none, for messages.
std::string describe(const bp_node_t& node);

// Returns body(). Adds the node to an sdk::Error that it throws, unless that names a node already or the run was
// cancelled or timed out, and to failed allocations.
template <class Body>
auto at_node(const bp_node_t& node, const Body& body) {
  try {
    return body();
  } catch (const sdk::Error& failure) {
    if (failure.node != BP_NO_NODE || failure.status == BP_CANCELLED || failure.status == BP_TIMED_OUT) throw;
    throw sdk::Error(failure.status, describe(node) + ": " + failure.text, node.id);
  } catch (const std::bad_alloc&) {
    throw sdk::Error(BP_RESOURCE_EXHAUSTED, describe(node) + ": there is not enough memory", node.id);
  } catch (const std::length_error&) {
    throw sdk::Error(BP_RESOURCE_EXHAUSTED, describe(node) + ": a list would be larger than all memory", node.id);
  }
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// Adds a node's name to the errors that occur in that node.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include "backplane/plugin.h"
#include "backplane/sdk/fence.hpp"

namespace backplane::cpu {

// Describes a node for messages: its operator and its name, or its id if it has no name.
std::string describe(const bp_node_t& node);

// Returns body(). If body throws an sdk::Error that has no node yet, rethrows it with this node's name; cancellations
// and timeouts pass unchanged. A failed allocation (std::bad_alloc, std::length_error) becomes an sdk::Error with the
// node's name.
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
    throw sdk::Error(BP_RESOURCE_EXHAUSTED, describe(node) + ": there is not enough memory for a list of this size",
                     node.id);
  }
}

}  // namespace backplane::cpu

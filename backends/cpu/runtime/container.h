// SPDX-License-Identifier: Apache-2.0
// Converts containers of the host to values and back.
#pragma once

#include "backplane/host.h"
#include "runtime/value.h"

namespace backplane::cpu {

// Converts a host's container, of a type of `graph`; tensors are borrowed from it. Throws sdk::Error if its elements
// are not of that type.
Value read_container(const bp_container_api_t& api, const bp_graph_t& graph, const bp_type_t& type,
                     const bp_container_t* container);
// Replaces the elements of a host's container. Throws sdk::Error.
void write_container(const bp_container_api_t& api, const Value& value, bp_container_t* container);

}  // namespace backplane::cpu

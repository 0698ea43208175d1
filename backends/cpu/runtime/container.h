// SPDX-License-Identifier: Apache-2.0
// Converts the host's containers (sequences, maps, optionals) to values and back.
#pragma once

#include "backplane/host.h"
#include "runtime/value.h"

namespace backplane::cpu {

// Converts a host's container of type `type` to a value, which borrows the container's tensors. Throws sdk::Error if an
// element is not of the declared type, or if a tensor is not a dense and valid one in host memory.
Value read_container(const bp_container_api_t& api, const bp_graph_t& graph, const bp_type_t& type,
                     const bp_container_t* container);
// Replaces the elements of a host's container with those of `value`. Throws sdk::Error.
void write_container(const bp_container_api_t& api, const Value& value, bp_container_t* container);

}  // namespace backplane::cpu

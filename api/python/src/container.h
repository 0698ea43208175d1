// SPDX-License-Identifier: Apache-2.0
// Sequences, optionals and maps. In Python these are lists, None or a value, and dicts.
#pragma once

#include <memory>

#include "argument.h"

namespace backplane::python {

using Container = std::shared_ptr<bp_container_t>;

// Returns a container of type `type` (an index in the graph's types) with a copy of `value`. `name` is for error
// messages.
Container make_container(const Environment& env, const bp_graph_t* graph, uint32_t type, nb::handle value,
                         std::string_view name);
// Returns a copy of the container as Python objects.
nb::object read_container(const Environment& env, const bp_graph_t* graph, uint32_t type,
                          const bp_container_t* container);

// A type as text: "float32[N,3]", "seq(int64[])".
std::string type_text(const bp_graph_t* graph, uint32_t type);

}  // namespace backplane::python

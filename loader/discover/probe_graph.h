// SPDX-License-Identifier: Apache-2.0
// The graph about which the probe queries the plugin: y = Relu(x) for float[4].
#pragma once

#include "backplane/graph.h"

namespace backplane {

// Valid for the life of the process.
const bp_graph_t& probe_graph();

}  // namespace backplane

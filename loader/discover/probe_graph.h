// SPDX-License-Identifier: Apache-2.0
// The graph that the probe queries: y = Relu(x) for float[4].
#pragma once

#include "backplane/graph.h"

namespace backplane {

// Lives as long as the process.
const bp_graph_t& probe_graph();

}  // namespace backplane

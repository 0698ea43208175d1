// SPDX-License-Identifier: Apache-2.0
// Sends flow by sweeps over the vertices.
#pragma once

#include "mincut/residual.h"

namespace backplane {

// Pushes flow to vertices with lower numbers, then to vertices with higher ones. Repeats this while the two sweeps
// together cancel at least a quarter of the remaining flow. Takes near-linear time. If arcs have much more capacity
// than vertices have excess, as with copies that cost more than nodes, hardly any flow is left. Excess and demand
// (capacity to the sink) move to other vertices, which leaves the minimum cut unchanged.
void send_in_sweeps(Residual& network);

}  // namespace backplane

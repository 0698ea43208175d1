// SPDX-License-Identifier: Apache-2.0
// Sends flow in breadth-first waves.
#pragma once

#include "mincut/residual.h"

namespace backplane {

// Sends the remaining flow in waves. Each wave searches breadth-first from the vertices with excess and moves demand
// (capacity to the sink) to vertices that the search found earlier, as far as capacities allow. The next wave searches
// again and continues with the demand that got stuck. A wave takes linear time. The number of waves depends on how many
// detours the flow needs, not on distances or on how much of the flow cannot arrive.
void send_in_waves(Residual& network);

}  // namespace backplane

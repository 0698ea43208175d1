// SPDX-License-Identifier: Apache-2.0
// Sends flow in breadth-first waves.
#pragma once

#include "mincut/residual.h"

namespace backplane {

// Sends the rest of the flow in waves: each moves all demand back along the levels of a breadth-first search, as far as
// capacities allow; the next wave continues with what got stuck, by a new search. Each wave is linear, and their number
// depends on how many detours the flow needs, not on distances or on how much of it cannot arrive.
void send_in_waves(Residual& network);

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Sends flow by push-relabel.
#pragma once

#include "mincut/residual.h"

namespace backplane {

// Sends the rest of the flow by push-relabel, from the side that has less of it. Fast if nearly all of it can arrive;
// flow that cannot is pushed back and forth until the labels show that.
void send_by_push_relabel(Residual& network);

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Sends flow by push-relabel.
#pragma once

#include "mincut/residual.h"

namespace backplane {

// Sends the remaining flow by push-relabel, from the source or the sink, whichever has less of it. Fast if nearly all
// of the flow can arrive: flow that cannot arrive is pushed back and forth until the labels show that there is no path.
void send_by_push_relabel(Residual& network);

}  // namespace backplane

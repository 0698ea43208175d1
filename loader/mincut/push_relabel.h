// SPDX-License-Identifier: Apache-2.0
// Sends flow by push-relabel.
#pragma once

#include "mincut/residual.h"

namespace backplane {

// Sends the rest of the flow by push-relabel, from the side that has less of it. Fast where nearly all of it can
// arrive; the rest is pushed back and forth until its labels show that it cannot.
void send_by_push_relabel(Residual& network);

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Whether a reduced graph is still a valid model: an invalid one proves nothing about a plugin.
#pragma once

#include "minimise/candidate.h"

namespace backplane::conform {

// The loader accepts it, and infers the same shapes as the oracle. In a process of its own: the oracle trusts its
// inputs.
bool is_sound(const Network& network);

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// Names of the ABI's status codes.
#pragma once

#include <string>

#include "backplane/status.h"

namespace backplane::conform {

// Returns "BP_UNSUPPORTED" and the like, and for a code that the ABI does not define, its number.
std::string status_name(bp_status_t status);

}  // namespace backplane::conform

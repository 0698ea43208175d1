// SPDX-License-Identifier: Apache-2.0
// Names of the ABI's status codes.
#pragma once

#include <string>

#include "backplane/status.h"

namespace backplane::conform {

// Returns the name of a code, such as "BP_UNSUPPORTED", or its number if the ABI does not define it.
std::string status_name(bp_status_t status);

}  // namespace backplane::conform

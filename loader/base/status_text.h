// SPDX-License-Identifier: Apache-2.0
// Status codes in messages.
#pragma once

#include <string>

#include "backplane/types.h"

namespace backplane {

// The name of a status code, as status_name returns it; of a code that the loader does not know, the number.
std::string status_text(bp_status_t code);

}  // namespace backplane

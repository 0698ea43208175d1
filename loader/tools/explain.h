// SPDX-License-Identifier: Apache-2.0
// The nodes that no device supports, for `explain` and `info`.
#pragma once

#include <string>

#include "command.h"

namespace backplane::tools {

// Return the nodes in a session's report that no device supports, and their text with one line for each operator and
// reason.
Json uncovered_nodes(const Json& report);
std::string uncovered_text(const Json& nodes);

}  // namespace backplane::tools

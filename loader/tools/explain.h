// SPDX-License-Identifier: Apache-2.0
// The nodes that no device supports, for `explain` and `info`.
#pragma once

#include <string>

#include "command.h"

namespace backplane::tools {

// Returns the nodes of a session's report that no device supports, and a text for them: a line for each operator.
Json uncovered_nodes(const Json& report);
std::string uncovered_text(const Json& nodes);

}  // namespace backplane::tools

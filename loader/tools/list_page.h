// SPDX-License-Identifier: Apache-2.0
// Shows a machine's backends and devices as a web page.
#pragma once

#include <string>

#include "command.h"

namespace backplane::tools {

// Returns a self-contained HTML file without scripts: list.html with the tables of `backplane list` inserted.
std::string list_page(const Json& report);

}  // namespace backplane::tools

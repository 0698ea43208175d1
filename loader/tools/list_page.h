// SPDX-License-Identifier: Apache-2.0
// Backends and devices of a machine as a page.
#pragma once

#include <string>

#include "command.h"

namespace backplane::tools {

// One HTML file that needs nothing else and runs no script: list.html with the tables of `backplane list` in it.
std::string list_page(const Json& report);

}  // namespace backplane::tools

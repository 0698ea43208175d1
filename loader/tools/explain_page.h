// SPDX-License-Identifier: Apache-2.0
// A placement as a picture.
#pragma once

#include <string>

#include "command.h"

namespace backplane::tools {

// One HTML file that needs nothing else: explain.html with the session's report and the graph's edges in it.
std::string explain_page(const std::string& model_file, const Json& report, view::Graph graph);

}  // namespace backplane::tools

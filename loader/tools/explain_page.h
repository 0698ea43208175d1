// SPDX-License-Identifier: Apache-2.0
// Shows a placement as a web page.
#pragma once

#include <string>

#include "command.h"

namespace backplane::tools {

// Returns a self-contained HTML file: explain.html with the session's report and the graph's edges inserted.
std::string explain_page(const std::string& model_file, const Json& report, view::Graph graph);

}  // namespace backplane::tools

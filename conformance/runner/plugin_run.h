// SPDX-License-Identifier: Apache-2.0
// `backplane-conform --plugin FILE`: a backend through the C ABI alone; `list`, what there is to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace backplane::conform {

// Declare options; what they give runs the command and answers the exit status.
std::function<int()> declare_plugin_run(CLI::App& app);
std::function<int()> declare_list(CLI::App& command);
// The process that `declare_plugin_run` starts for its cases.
std::function<int()> declare_case_child(CLI::App& command);

}  // namespace backplane::conform

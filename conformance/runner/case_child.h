// SPDX-License-Identifier: Apache-2.0
// The process that runs cases: it has the plugin loaded and may crash or hang.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace backplane::conform {

std::function<int()> declare_case_child(CLI::App& command);

}  // namespace backplane::conform

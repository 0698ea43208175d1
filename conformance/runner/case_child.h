// SPDX-License-Identifier: Apache-2.0
// The process that runs cases: it has the plugin loaded and may crash or hang.
#pragma once

#include <functional>

#include "cli/command.h"

namespace backplane::conform {

std::function<int()> declare_case_child(cli::Command command);

}  // namespace backplane::conform

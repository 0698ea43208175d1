// SPDX-License-Identifier: Apache-2.0
// `backplane-conform report` and `compare`: what journals tell.
#pragma once

#include <functional>

#include "cli/command.h"

namespace backplane::conform {

std::function<int()> declare_report(cli::Command command);
std::function<int()> declare_compare(cli::Command command);

}  // namespace backplane::conform

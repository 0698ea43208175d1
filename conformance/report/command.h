// SPDX-License-Identifier: Apache-2.0
// `backplane-conform report` and `compare`: what journals tell.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace backplane::conform {

std::function<int()> declare_report(CLI::App& command);
std::function<int()> declare_compare(CLI::App& command);

}  // namespace backplane::conform

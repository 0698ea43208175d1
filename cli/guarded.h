// SPDX-License-Identifier: Apache-2.0
// The exit status of a program.
#pragma once

#include <functional>
#include <string_view>

namespace backplane::cli {

enum ExitStatus { kSuccess = 0, kNegative = 1, kWrongUsage = 2 };

// Returns what `run` returns. An exception becomes "program: what" on standard error, and kWrongUsage for Usage or
// kNegative for any other.
int guarded(std::string_view program, const std::function<int()>& run);

}  // namespace backplane::cli

// SPDX-License-Identifier: Apache-2.0
// Converts exceptions of a program to its exit status.
#pragma once

#include <functional>
#include <string_view>

namespace backplane::cli {

enum ExitStatus { kSuccess = 0, kNegative = 1, kWrongUsage = 2 };

// Returns the result of `run`. If it throws, prints "program: what" on standard error and returns kWrongUsage for
// Usage, or kNegative for any other exception.
int guarded(std::string_view program, const std::function<int()>& run);

}  // namespace backplane::cli

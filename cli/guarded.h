// SPDX-License-Identifier: Apache-2.0
// Converts exceptions of a program to its exit status, and finds out whether its output was written.
#pragma once

#include <functional>
#include <string_view>

namespace backplane::cli {

enum ExitStatus { kSuccess = 0, kNegative = 1, kWrongUsage = 2 };

// Returns the result of `run`. Standard streams that are closed are opened on /dev/null first, so that no other file
// gets their descriptors; writing to standard output still fails. If `run` throws, prints "program: what" on standard
// error and returns kWrongUsage for Usage, or kNegative for any other exception.
int guarded(std::string_view program, const std::function<int()>& run);

// Writes text to standard error. Ignores errors, as there is nowhere to report them.
void print_err(std::string_view text);
// Writes text to standard output at once. Throws if that fails, on a full disk for example.
void print_out(std::string_view text);
// Returns `status`, but throws if something that was printed on standard output could not be written.
int printed(int status);

}  // namespace backplane::cli

// SPDX-License-Identifier: Apache-2.0
// Completion scripts for shells.
#pragma once

#include <string>
#include <string_view>

#include "cli/words.h"

namespace backplane::cli {

// Returns a completion script for bash, zsh or fish. Empty for any other shell.
std::string completion(const CommandWords& program, std::string_view shell);

}  // namespace backplane::cli

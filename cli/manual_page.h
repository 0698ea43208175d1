// SPDX-License-Identifier: Apache-2.0
// The manual page of a program.
#pragma once

#include <string>
#include <string_view>

#include "cli/words.h"

namespace backplane::cli {

// Returns a manual page of section 1, as troff with the man macros. `footer` describes the exit status.
std::string manual_page(const CommandWords& program, std::string_view version, std::string_view footer);

}  // namespace backplane::cli

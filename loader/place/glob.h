// SPDX-License-Identifier: Apache-2.0
// Patterns of node names and operators in pins.
#pragma once

#include <string_view>

namespace backplane {

// Whether the pattern matches the whole text. As in a shell, * matches any number of characters, ? exactly one.
bool glob(std::string_view pattern, std::string_view text);

}  // namespace backplane

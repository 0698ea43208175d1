// SPDX-License-Identifier: Apache-2.0
// Patterns of node names in pins.
#pragma once

#include <string_view>

namespace backplane {

// Matches like a shell: * matches any run of characters, ? exactly one.
bool glob(std::string_view pattern, std::string_view text);

}  // namespace backplane

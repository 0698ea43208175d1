// SPDX-License-Identifier: Apache-2.0
// Patterns of pins.
#pragma once

#include <string_view>

namespace backplane {

// Shell-style match: * any run of characters, ? one.
bool glob(std::string_view pattern, std::string_view text);

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Escapes text for XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace backplane::cli {

// Escapes text for an element or an attribute. Characters that XML 1.0 cannot represent become '?'.
std::string xml(std::string_view text);

}  // namespace backplane::cli

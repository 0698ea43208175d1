// SPDX-License-Identifier: Apache-2.0
// Escapes text for XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace backplane::cli {

// Escapes text for an element or an attribute. Control characters below U+0020 become '?', except tabs and line feeds.
std::string xml(std::string_view text);

}  // namespace backplane::cli

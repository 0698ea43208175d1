// SPDX-License-Identifier: Apache-2.0
// Formats names from files for error messages.
#pragma once

#include <string>
#include <string_view>

namespace backplane {

// 'name' in single quotes, with control characters shown as '?'. A name of more than 120 bytes is cut after
// byte 120, or before the character that this cut would split, and ends in "…".
std::string in_quotes(std::string_view name);
// Like in_quotes, but without the quotes.
std::string shortened(std::string_view name);
// The domain's name for messages: the empty domain is "ai.onnx".
std::string_view domain_name(std::string_view domain);
bool is_utf8(std::string_view text);

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Names from files, in error texts.
#pragma once

#include <string>
#include <string_view>

namespace backplane::model {

// 'name', shortened if it is very long, with control characters shown as '?'.
std::string in_quotes(std::string_view name);
// How people call a domain: the empty one is "ai.onnx".
std::string_view spoken(std::string_view domain);
bool is_utf8(std::string_view text);

}  // namespace backplane::model

// SPDX-License-Identifier: Apache-2.0
// Text from outside (models, manifests, plugins, the environment, bundles) before it reaches a terminal, a log or a
// page. It depends on nothing, so that the loader uses it too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace backplane::cli {

inline constexpr size_t kPrintableBytes = 4000;

// One line of valid UTF-8 that cannot control a terminal: control characters (C0, DEL, C1) and line separators become
// spaces, characters that change the direction of text or are invisible and bytes that are not UTF-8 become U+FFFD.
// More than `most` bytes are cut, and "… (N bytes)" follows.
std::string printable(std::string_view text, size_t most = kPrintableBytes);

// The same for text of many lines, whose line feeds and tabs stay; nothing is cut.
std::string printable_lines(std::string_view text);

}  // namespace backplane::cli

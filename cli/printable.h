// SPDX-License-Identifier: Apache-2.0
// Makes text from outside (models, manifests, plugins, the environment, bundles) safe for a terminal, a log or a
// page. It depends on nothing, so that the loader uses it too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace backplane::cli {

inline constexpr size_t kPrintableBytes = 4000;

// Returns one line of valid UTF-8 that cannot control a terminal: control characters (C0, DEL, C1) and line separators
// become spaces; invisible characters, those that change the direction of text, and bytes that are not UTF-8 become
// U+FFFD. Text longer than `most` bytes is cut, and "… (N bytes)" follows.
std::string printable(std::string_view text, size_t most = kPrintableBytes);

// As `printable`, for text of many lines: keeps line feeds and tabs, and cuts nothing.
std::string printable_lines(std::string_view text);

}  // namespace backplane::cli

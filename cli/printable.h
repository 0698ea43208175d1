// SPDX-License-Identifier: Apache-2.0
// Makes untrusted text (from models, manifests, plugins, the environment, bundles) safe for a terminal, a log or a
// page. Has no dependencies, so that the loader can use it too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace backplane::cli {

inline constexpr size_t kPrintableBytes = 4000;

// Returns one line of valid UTF-8 that cannot control a terminal. Control characters (C0, DEL, C1) and line separators
// become spaces. Invisible characters, characters that change the direction of text, and invalid UTF-8 become U+FFFD.
// Text longer than `most` bytes is cut and followed by "… (N bytes)".
std::string printable(std::string_view text, size_t most = kPrintableBytes);

// Like `printable`, for multi-line text: keeps line feeds and tabs, and does not cut.
std::string printable_lines(std::string_view text);

}  // namespace backplane::cli

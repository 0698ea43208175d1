// SPDX-License-Identifier: Apache-2.0
// The stored verdict of the probe on a file's content, valid until the content or the loader changes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace backplane {

struct Verdict {
  bool survived = false;
  std::string how;  // how the process ended, if it did not survive
};

// Where this build of the loader stores its verdict on `content` (a BLAKE2b); empty if there is no cache folder.
std::filesystem::path verdict_path(std::string_view content);

// Nullopt if no verdict is stored, if others can write its file, or if it is damaged.
std::optional<Verdict> recall_verdict(std::string_view content);
// Stores a verdict. Failures are ignored: the next start only takes longer.
void remember_verdict(std::string_view content, const Verdict& verdict);

// Parses a cache file; nullopt if it is damaged or not about `content`.
std::optional<Verdict> parse_verdict(std::string_view text, std::string_view content);

}  // namespace backplane

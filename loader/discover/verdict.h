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

// The path of the verdict of this build of the loader on `content` (its BLAKE2b); empty if nothing is stored.
std::filesystem::path verdict_path(std::string_view content);

// None if there is none, if others can write it, or if it is damaged.
std::optional<Verdict> recall_verdict(std::string_view content);
// Failures are ignored: the next start only takes longer.
void remember_verdict(std::string_view content, const Verdict& verdict);

// The text of a cache entry, which must be that of `content`.
std::optional<Verdict> parse_verdict(std::string_view text, std::string_view content);

}  // namespace backplane

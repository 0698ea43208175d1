// SPDX-License-Identifier: Apache-2.0
// What the probe found out about a file's content, kept until the content or the loader changes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace backplane {

struct Verdict {
  bool survived = false;
  std::string how;  // it ended, where it did not survive
};

// Where the verdict on `content` (its BLAKE2b) of this build of the loader is kept; empty: nowhere.
std::filesystem::path verdict_path(std::string_view content);

// None where there is none, where others can write it, or where it is broken.
std::optional<Verdict> recall_verdict(std::string_view content);
// A cache that cannot be written costs time at the next start and nothing else.
void remember_verdict(std::string_view content, const Verdict& verdict);

// The text of a cache entry, which must be that of `content`.
std::optional<Verdict> parse_verdict(std::string_view text, std::string_view content);

}  // namespace backplane

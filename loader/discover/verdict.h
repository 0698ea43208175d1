// SPDX-License-Identifier: Apache-2.0
// The probe's stored verdict on the content of a library. Valid until the content or the loader changes, or, if no
// device could be tried, until the situation does.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace backplane {

struct Verdict {
  bool survived = false;
  std::string how;  // if it did not survive: how the process ended
  // If it hung: the time that it was given, in milliseconds. Otherwise 0. The verdict does not hold for a longer limit.
  int64_t hung_for = 0;
  // If it survived, but had no device to try: the situation (known.h) for which the verdict holds. Otherwise empty.
  std::string situation;
};

// Where this build of the loader stores its verdict on `content`, a BLAKE2b hash; empty if there is no cache folder.
std::filesystem::path verdict_path(std::string_view content);

// nullopt if no verdict is stored, if other users can write to its file, or if it is damaged.
std::optional<Verdict> recall_verdict(std::string_view content);
// Stores a verdict. Ignores failures, because they only make the next start slower.
void remember_verdict(std::string_view content, const Verdict& verdict);

// Parses a stored verdict. nullopt if it is damaged or belongs to another content.
std::optional<Verdict> parse_verdict(std::string_view text, std::string_view content);

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Suggestions for misspelled words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace backplane::cli {

// Returns the word nearest to `seen`, the first one on a tie. It may be at most two insertions, deletions, replacements
// or swaps of adjacent letters away. Empty if there is none.
std::string nearest(std::string_view seen, const std::vector<std::string>& words);

// Returns " (did you mean 'explain'?)" with the nearest of `words`; empty if there is none.
std::string suggest(std::string_view seen, const std::vector<std::string>& words);

}  // namespace backplane::cli

// SPDX-License-Identifier: Apache-2.0
// Suggestions for misspelled words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace backplane::cli {

// The first of the `words` nearest to `seen`, at most two insertions, deletions, replacements or swaps of
// neighbours away; empty if there is none.
std::string nearest(std::string_view seen, const std::vector<std::string>& words);

// " (did you mean 'explain'?)" with the nearest of `words`; empty if there is none.
std::string suggest(std::string_view seen, const std::vector<std::string>& words);

}  // namespace backplane::cli

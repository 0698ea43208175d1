// SPDX-License-Identifier: Apache-2.0
// Words of a command line that mean nothing, and what was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::conform {

// The word that one insertion, deletion, replacement or swap of neighbours, or two of them, make of `seen`; empty where
// none is so near.
std::string nearest(std::string_view seen, const std::vector<std::string>& words);

// Lets `app` and its commands take words that they do not know, for unknown_word to tell of.
void keep_unknown_words(CLI::App& app);
// After parsing, even where that failed: "there is no option '--plugn' (did you mean '--plugin'?)", or empty.
std::string unknown_word(const CLI::App& app);

}  // namespace backplane::conform

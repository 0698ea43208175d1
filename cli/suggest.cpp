// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.h"

#include <algorithm>
#include <numeric>

namespace backplane::cli {
namespace {

// Computes the edit distance, with one row of the table for each letter of `a`: after i rows, entry j is the number of
// edits between the first i letters of `a` and the first j of `b`.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1)});
      const bool is_swap = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (is_swap) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before = last;
    last = row;
  }
  return last.back();
}

}  // namespace

std::string nearest(std::string_view seen, const std::vector<std::string>& words) {
  constexpr size_t kFurthest = 2, kLongest = 64;
  if (seen.size() > kLongest) return "";
  std::string best;
  size_t least = kFurthest + 1;
  for (const std::string& word : words) {
    if (const size_t distance = edits(seen, word); distance < least) {
      least = distance;
      best = word;
    }
  }
  return best;
}

std::string suggest(std::string_view seen, const std::vector<std::string>& words) {
  const std::string word = nearest(seen, words);
  return word.empty() ? "" : " (did you mean '" + word + "'?)";
}

}  // namespace backplane::cli

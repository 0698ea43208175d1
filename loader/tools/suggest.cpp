// SPDX-License-Identifier: Apache-2.0
#include "suggest.h"

#include <algorithm>

namespace backplane::tools {
namespace {

// Insertions, deletions, replacements and swaps of neighbours that lead from a to b.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string suggest(std::string_view seen, const std::vector<std::string>& words) {
  if (words.empty() || seen.size() > 64) return {};
  const auto nearest =
      std::ranges::min_element(words, {}, [&](const std::string& word) { return distance(seen, word); });
  return distance(seen, *nearest) > 2 ? "" : " (did you mean '" + *nearest + "'?)";
}

}  // namespace backplane::tools

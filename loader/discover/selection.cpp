// SPDX-License-Identifier: Apache-2.0
#include "discover/selection.h"

#include <algorithm>

namespace backplane {
namespace {

void add(std::string_view list, std::vector<std::string>& patterns) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (end > 0) patterns.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

bool any(const std::vector<std::string>& patterns, std::string_view id, std::string_view full_id) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return matches(pattern, id) || (!full_id.empty() && matches(pattern, full_id));
  });
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  // After a star, tries the remaining pattern at each position of the text. It never has to return to an earlier star,
  // so the time is at most proportional to the product of both lengths.
  size_t p = 0, t = 0, behind_star = pattern.npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      behind_star = ++p;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (behind_star != pattern.npos) {
      p = behind_star;
      t = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

bool matches_any(std::string_view pattern, const SeenNames& names) {
  return std::ranges::any_of(names, [&](const std::string& name) { return matches(pattern, name); });
}

void Selection::select(std::string_view patterns) {
  add(patterns, selected_);
}

void Selection::disable(std::string_view patterns) {
  add(patterns, disabled_);
}

std::string_view Selection::unwanted(std::string_view id, std::string_view full_id) const {
  if (any(disabled_, id, full_id)) return "is disabled by BACKPLANE_DISABLE or option loader.disable";
  if (!selected_.empty() && !any(selected_, id, full_id))
    return "is not selected by BACKPLANE_SELECT or option loader.select";
  return {};
}

std::string Selection::unmatched(const SeenNames& names) const {
  std::string list;
  for (const auto* patterns : {&disabled_, &selected_})
    for (const std::string& pattern : *patterns)
      if (!matches_any(pattern, names)) list += (list.empty() ? "\"" : ", \"") + pattern + "\"";
  return list;
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Which backends may be used, set by BACKPLANE_SELECT, BACKPLANE_DISABLE, and the options loader.select and
// loader.disable.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace backplane {

// Whether `pattern` matches the whole `text`: '*' matches any number of characters, '?' exactly one.
bool matches(std::string_view pattern, std::string_view text);

// The names of the backends that were found: short ids, full ids and names of files.
using SeenNames = std::set<std::string>;
// Whether `pattern` matches one of them.
bool matches_any(std::string_view pattern, const SeenNames& names);

class Selection {
 public:
  // Both add patterns for ids, separated by commas.
  void select(std::string_view patterns);
  void disable(std::string_view patterns);

  // Why a backend may not be used, as a text that completes "backend cpu …"; empty if it may be used. `id` is
  // the short id ("cpu"), `full_id` the one in the manifest ("org.backplane.cpu") or empty. Disabling takes precedence
  // over selecting. If nothing was selected, all backends are.
  std::string_view unwanted(std::string_view id, std::string_view full_id) const;
  // The patterns that match no backend, as a list; empty: none.
  std::string unmatched(const SeenNames& names) const;

 private:
  std::vector<std::string> selected_, disabled_;
};

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Which backends the user wants: BACKPLANE_SELECT and BACKPLANE_DISABLE, options loader.select and loader.disable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace backplane {

// Whether `pattern` matches all of `text`: '*' matches any number of characters, '?' exactly one.
bool matches(std::string_view pattern, std::string_view text);

class Selection {
 public:
  // Add patterns of ids, separated by commas.
  void select(std::string_view patterns);
  void disable(std::string_view patterns);

  // Why a backend is not selected; empty if it is. Its ids are the short one ("cpu") and, with a manifest, the full one
  // ("org.backplane.cpu"). Disabling takes precedence over selecting; without a selection all are selected.
  std::string_view unwanted(std::string_view id, std::string_view full_id) const;

 private:
  std::vector<std::string> selected_, disabled_;
};

}  // namespace backplane

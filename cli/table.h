// SPDX-License-Identifier: Apache-2.0
// Columns of text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace backplane::cli {

// Columns as wide as their widest cell; two spaces between, none at line ends.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(std::string_view indent = "  ") const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace backplane::cli

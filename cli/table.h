// SPDX-License-Identifier: Apache-2.0
// Prints text in columns.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace backplane::cli {

// Columns are as wide as their widest cell, up to 100 bytes, with two spaces between them. Lines have no trailing
// spaces. Cells are made printable.
class Table {
 public:
  void row(std::vector<std::string> cells);
  std::string text(std::string_view indent = "  ") const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace backplane::cli

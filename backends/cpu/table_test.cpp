// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "runtime/operators.h"

namespace backplane::cpu {
namespace {

// Returns the words in backquotes in the first column of a Markdown page's tables.
std::set<std::string> first_column(const std::string& file) {
  std::ifstream page(std::string(BACKPLANE_SOURCE_DIR) + "/" + file);
  EXPECT_TRUE(page.is_open()) << file << " has moved";
  std::set<std::string> words;
  std::string line;
  while (std::getline(page, line)) {
    if (!line.starts_with("| `")) continue;
    const std::string column = line.substr(0, line.find('|', 1));
    for (size_t at = 0; (at = column.find('`', at)) != std::string::npos;) {
      const size_t end = column.find('`', at + 1);
      words.insert(column.substr(at + 1, end - at - 1));
      at = end + 1;
    }
  }
  return words;
}

TEST(Table, TheReferenceHasTheOperatorsOfMicrosoft) {
  std::set<std::string> rows;
  for (const Row& row : operators().rows()) {
    if (row.domain == "com.microsoft") rows.emplace(row.op_type);
  }
  EXPECT_GE(rows.size(), 28u);
  EXPECT_EQ(first_column("docs/reference/microsoft.md"), rows);
}

}  // namespace
}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

Status string_concat(Context& c) {
  if (!c.ranked(0) || !c.ranked(1)) return {};
  Shape shape;
  BP_TRY(c.broadcast(c.shape(0), c.shape(1), shape));
  return c.set_shape(0, shape);
}

Status string_split(Context& c) {
  c.copy_shape(1, 0);
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0);
  shape.push_back({});
  return c.set_shape(0, shape);
}

// If there are stop words, the operator removes them, so the last extent is unknown.
Status normalize(Context& c) {
  BP_TRY(c.expect_rank(0, 1, 2));
  if (!c.ranked(0)) return {};
  if (c.texts("stopwords").empty()) return same_shape(c);
  Shape shape = c.shape(0);
  shape.back() = {};
  return c.set_shape(0, shape);
}

Status tf_idf(Context& c) {
  BP_TRY(c.expect_rank(0, 1, 2));
  if (!c.ranked(0)) return {};
  const auto& columns = c.integers("ngram_indexes");
  int64_t width = 0;
  for (int64_t column : columns) {
    if (column < 0 || column > INT32_MAX)
      return c.fail("ngram_indexes has " + std::to_string(column) + ", but it must be from 0 to 2147483647");
    width = std::max(width, column + 1);
  }
  Shape shape = c.shape(0);
  shape.back() = width;
  return c.set_shape(0, shape);
}

}  // namespace

std::span<const RuleRow> text_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "RegexFullMatch", same_shape}, {"", "StringConcat", string_concat}, {"", "StringNormalizer", normalize},
      {"", "StringSplit", string_split},  {"", "TfIdfVectorizer", tf_idf},
  };
  return kRows;
}

}  // namespace backplane::ops

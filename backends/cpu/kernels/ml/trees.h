// SPDX-License-Identifier: Apache-2.0
// Decision trees, each of which leads from a row of numbers to one of its leaves.
#pragma once

#include "kernels/ml/support.h"

namespace backplane::cpu::ml {

enum class Test { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kMember };

struct Branch {
  Test test = Test::kLessEqual;
  bool missing_is_true = false;  // NaN takes the branch `yes`
  int64_t feature = 0;
  double value = 0;
  uint32_t members = 0;  // for kMember: index in Forest::members
  int64_t yes = 0;       // index of a branch, or ~index of a leaf
  int64_t no = 0;
};

struct LeafWeight {
  int64_t target;
  double weight;
};

struct Forest {
  std::vector<Branch> branches;
  std::vector<std::vector<double>> members;  // sorted sets for kMember
  std::vector<std::vector<LeafWeight>> leaves;
  std::vector<int64_t> roots;  // indices of branches, or ~indices of leaves
  int64_t features = 0;        // minimum number of elements of a row

  // Returns an error message, empty if the forest is valid. Detects children, features and targets that are out of
  // range, and cycles, in which a row would loop forever. Sets `features`.
  std::string check(int64_t targets);
  const std::vector<LeafWeight>& leaf(int64_t root, std::span<const double> row) const;
};

enum class Aggregate { kAverage, kSum, kMin, kMax };

// The aggregate of one target over the leaves that a row reaches. If none of these leaves has a weight for the target,
// `has` is false and `value` is 0.
struct Score {
  double value = 0;
  bool has = false;
};
void aggregate(const Forest& forest, Aggregate how, std::span<const double> row, std::span<Score> scores);

// Read the forest of a TreeEnsemble (read_forest), or of a TreeEnsembleClassifier (prefix "class") or
// TreeEnsembleRegressor (prefix "target"). They throw sdk::Error if attributes are invalid or inconsistent.
Forest read_forest(const Node& node);
Forest read_old_forest(const Node& node, std::string_view leaf_prefix);

}  // namespace backplane::cpu::ml

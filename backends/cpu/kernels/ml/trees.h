// SPDX-License-Identifier: Apache-2.0
// Decision trees: from a row of numbers to a leaf of each tree.
#pragma once

#include "kernels/ml/support.h"

namespace backplane::cpu::ml {

enum class Test { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kMember };

struct Branch {
  Test test = Test::kLessEqual;
  bool missing_is_true = false;  // whether NaN takes the branch `yes`
  int64_t feature = 0;
  double value = 0;
  uint32_t members = 0;  // kMember: index into Forest::members
  int64_t yes = 0;       // a branch, or ~leaf
  int64_t no = 0;
};

struct LeafWeight {
  int64_t target;
  double weight;
};

struct Forest {
  std::vector<Branch> branches;
  std::vector<std::vector<double>> members;  // sorted
  std::vector<std::vector<LeafWeight>> leaves;
  std::vector<int64_t> roots;  // branches, or ~leaves
  int64_t features = 0;        // the least number of elements of a row

  // Returns a message, empty if the forest is valid. Errors are children, features or targets out of range, and cycles,
  // in which a row would loop forever. Sets `features`.
  std::string check(int64_t targets);
  const std::vector<LeafWeight>& leaf(int64_t root, std::span<const double> row) const;
};

enum class Aggregate { kAverage, kSum, kMin, kMax };

// A target's aggregate over the leaves that a row reaches. If none of them has a weight for the target, `has` is false
// and `value` is 0.
struct Score {
  double value = 0;
  bool has = false;
};
void aggregate(const Forest& forest, Aggregate how, std::span<const double> row, std::span<Score> scores);

// Reads the forest of TreeEnsemble, and that of TreeEnsembleClassifier ("class") and -Regressor ("target"). Throws
// sdk::Error if the attributes do not fit together.
Forest read_forest(const Node& node);
Forest read_old_forest(const Node& node, std::string_view leaf_prefix);

}  // namespace backplane::cpu::ml

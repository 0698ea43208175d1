// SPDX-License-Identifier: Apache-2.0
// Outputs that are drawn at random: no two generators agree on them, but the law that they follow can be tested.
#pragma once

#include <optional>
#include <string>

#include "backplane/graph.hpp"
#include "onnx/value.h"

namespace backplane::conform {

enum class Law {
  kBernoulli,      // y is 1 with probability x, else 0
  kBernoulliRest,  // y is 1 with probability 1 - x: so says ONNX's own expansion of Bernoulli
  kDropout,        // y is 0 with probability ratio, else x / (1 - ratio); mask says which
};

// The law of a graph that is one such operator, or ONNX's own expansion of it; nothing for all others.
std::optional<Law> law_of(const view::Graph& graph);

// What runs of the same inputs gave, and whether that is likely.
class Draws {
 public:
  // `inputs` are the graph's, in order. Throws onnx::Malformed where they are not what the law needs.
  Draws(Law law, const std::vector<onnx::Value>& inputs);
  // Another run's outputs, of the types and shapes of the test data (the caller compared those). Answers what cannot
  // be, or nothing.
  std::string add(const std::vector<onnx::Value>& outputs);
  // Whether the count of ones (of kept elements) is within five standard deviations of its mean: a right backend fails
  // once in 1.7 million times.
  std::string fault() const;

 private:
  std::string add_bernoulli(const onnx::Tensor& y);
  std::string add_dropout(const std::vector<onnx::Value>& outputs);

  Law law_;
  onnx::Tensor x_;
  double ratio_ = 0.5;  // of dropout
  double seen_ = 0, mean_ = 0, variance_ = 0;
};

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// Tests random outputs by their distribution: generators differ in the values.
#pragma once

#include <optional>
#include <string>

#include "backplane/graph.hpp"
#include "onnx/value.h"

namespace backplane::conform {

enum class Distribution {
  kBernoulli,      // y is 1 with probability x, else 0
  kBernoulliRest,  // y is 1 with probability 1 - x, as in ONNX's own expansion of Bernoulli
  kDropout,        // y is 0 with probability ratio, else x / (1 - ratio); mask says which
};

// The distribution of a graph that is one such operator, or ONNX's own expansion of it; nullopt for others.
std::optional<Distribution> distribution_of(const view::Graph& graph);

// Collects the outputs of several runs on the same inputs, and tests whether they are likely.
class Draws {
 public:
  // `inputs` are the graph's, in order. Throws onnx::Malformed if they are not those that the distribution needs.
  Draws(Distribution distribution, const std::vector<onnx::Value>& inputs);
  // Adds another run's outputs, whose types and shapes the caller has compared. Returns what is impossible in them, or
  // an empty string.
  std::string add(const std::vector<onnx::Value>& outputs);
  // Empty if the count of ones (of kept elements) is within five standard deviations of its mean: a right backend fails
  // once in 1.7 million times.
  std::string fault() const;

 private:
  std::string add_bernoulli(const onnx::Tensor& y);
  std::string add_dropout(const std::vector<onnx::Value>& outputs);

  Distribution distribution_;
  onnx::Tensor x_;
  double ratio_ = 0.5;  // of dropout
  double seen_ = 0, mean_ = 0, variance_ = 0;
};

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// Tests random outputs by their distribution, because generators differ in their values.
#pragma once

#include <optional>
#include <string>

#include "backplane/graph.hpp"
#include "onnx/value.h"

namespace backplane::conform {

enum class Distribution {
  kBernoulli,      // y is 1 with probability x, else 0
  kBernoulliRest,  // y is 1 with probability 1 - x, as in ONNX's own expansion of Bernoulli
  kDropout,        // y is 0 with probability `ratio`, else x / (1 - ratio); the mask says which elements were kept
};

// True if a node of the graph sets a seed: the graph then draws the same values in each run.
bool is_seeded(const view::Graph& graph);

// Collects the outputs of several runs on the same inputs, and tests whether their statistics are plausible.
class Draws {
 public:
  // `ratio` is Dropout's.
  Draws(Distribution distribution, onnx::Tensor x, double ratio = 0.5)
      : distribution_(distribution), x_(std::move(x)), ratio_(ratio) {}
  // Adds the outputs of another run. The caller has compared their types and shapes. Returns a description of an
  // impossible value, or an empty string. Throws onnx::Malformed if an output does not have as many elements as x.
  std::string add(const std::vector<onnx::Value>& outputs);
  // Empty if the number of ones (Bernoulli) or of kept elements (Dropout) is within five standard deviations of its
  // mean. A correct backend fails once in 1.7 million tests.
  std::string fault() const;
  // True if the variance is so large that runs do not have equal outputs by coincidence: n runs of the same variance V
  // all have equal outputs with a probability below exp(-n·V).
  bool must_vary() const { return variance_ > 30; }

 private:
  std::string add_bernoulli(const onnx::Tensor& y);
  std::string add_dropout(const std::vector<onnx::Value>& outputs);

  Distribution distribution_;
  onnx::Tensor x_;
  double ratio_;
  double seen_ = 0, mean_ = 0, variance_ = 0;
};

// Draws of a graph that applies Dropout, Bernoulli or ONNX's own expansion of Bernoulli to inputs of the graph.
// `inputs` are their values, in order. Returns nullopt for every other graph, including one whose results are
// deterministic (Dropout outside training mode, a comparison without a random operand) or whose operand is an
// initializer.
std::optional<Draws> draws_of(const view::Graph& graph, const std::vector<onnx::Value>& inputs);

}  // namespace backplane::conform

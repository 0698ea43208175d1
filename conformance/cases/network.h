// SPDX-License-Identifier: Apache-2.0
// Random graphs: valid, typed, drawn from a seed, with useful error bounds for their results.
#pragma once

#include "cases/random.h"
#include "judge/estimate.h"

namespace backplane::conform {

// A graph and its inputs.
struct Network {
  GraphSpec spec;
  std::vector<onnx::Tensor> inputs;
};

struct Recipe {
  uint32_t nodes = 5;
  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  bool linear = false;  // linear in the inputs, without a bias: negated inputs negate the results
};

// Every computed value that no node reads becomes an output, and so do a few other computed values.
Network random_network(Random& random, const Recipe& recipe, uint32_t opset);

// Divides the nodes that `mask` allows into convex graphs. A value from outside a graph becomes an input, set to the
// oracle's estimate rounded to the value's type.
std::vector<Network> islands(const Network& network, const std::vector<bool>& mask);

}  // namespace backplane::conform

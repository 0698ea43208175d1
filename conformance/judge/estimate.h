// SPDX-License-Identifier: Apache-2.0
// The expected results of a graph of several operators, and the error allowed to a device that keeps each operator's
// bound.
#pragma once

#include <optional>
#include <vector>

#include "judge/oracle.h"
#include "onnx/graph.h"

namespace backplane::conform {

// A value of a graph, in double precision: floats are not rounded to the value's type in between.
struct Estimate {
  Array value;
  // |seen - value| of each element stays below `error` in the worst case, and its root mean square below `typical`.
  std::vector<double> error, typical;

  // False for a value that was not computed: even a scalar has an element.
  bool is_computed() const { return !value.values.empty() || !value.extents.empty(); }
  // The reference for the judge.
  Reference reference() const;
};

// Computes a node's outputs from its inputs (NULL: omitted). Throws std::invalid_argument if the oracle does not know
// the operator or its error propagation, or if the inputs do not fit.
std::vector<Estimate> estimate(const NodeSpec& node, const std::vector<const Estimate*>& inputs, bool flushes);
// The estimate of an exact tensor. Throws std::invalid_argument if its elements are not real numbers.
Estimate exact_estimate(const onnx::Tensor& tensor);
// Computes the outputs of a graph's nodes into `values`, which has an entry for each of the graph's values and contains
// the graph's inputs and what it reads from the outer graph. Throws std::invalid_argument.
void evaluate(const GraphSpec& graph, std::vector<Estimate>& values, bool flushes);
// Returns all values of an outermost graph; those that are not computed are empty. Throws std::invalid_argument.
std::vector<Estimate> estimate(const GraphSpec& graph, const std::vector<onnx::Tensor>& inputs, bool flushes);

}  // namespace backplane::conform

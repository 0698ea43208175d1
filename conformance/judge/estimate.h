// SPDX-License-Identifier: Apache-2.0
// The expected results of a graph of several operators, and the error allowed to a device that keeps each operator's
// bound.
#pragma once

#include <optional>
#include <vector>

#include "judge/oracle.h"
#include "onnx/graph.h"

namespace backplane::conform {

// A value of a graph. Everything is in double precision: nothing is rounded to the value's type on the way.
struct Estimate {
  Array value;
  // |seen - value| of each element stays below `error` in the worst case, and its root mean square below `typical`.
  std::vector<double> error, typical;

  // False for a value that was not computed: even a scalar has an element.
  bool is_computed() const { return !value.values.empty() || !value.extents.empty(); }
  // For the judge.
  Reference reference() const;
};

// A node's outputs from its inputs (NULL: omitted). Throws std::invalid_argument if the oracle does not know the
// operator or its error propagation, or the inputs do not fit.
std::vector<Estimate> estimate(const NodeSpec& node, const std::vector<const Estimate*>& inputs, bool flushes);
// An exact tensor. Throws std::invalid_argument if it has no numbers.
Estimate exact_estimate(const onnx::Tensor& tensor);
// Computes what the nodes of a graph compute; `values`, one for each of the graph, has its inputs and what it takes
// from the graph around it. Throws std::invalid_argument.
void evaluate(const GraphSpec& graph, std::vector<Estimate>& values, bool flushes);
// Every value of an outermost graph; values that are not computed are empty. Throws std::invalid_argument.
std::vector<Estimate> estimate(const GraphSpec& graph, const std::vector<onnx::Tensor>& inputs, bool flushes);

}  // namespace backplane::conform

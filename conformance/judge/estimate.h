// SPDX-License-Identifier: Apache-2.0
// The expected results of a graph of several operators, and the error allowed for a device that keeps the bound of each
// operator.
#pragma once

#include <optional>
#include <vector>

#include "judge/oracle.h"
#include "onnx/graph.h"

namespace backplane::conform {

// A value of a graph in double precision. Floats are not rounded to their type between nodes.
struct Estimate {
  Array value;
  // |seen - value| of each element is at most `error`, and the root mean square of (seen - value) / `typical` over all
  // elements is at most 1.
  std::vector<double> error, typical;

  // False if the value was not computed. A computed scalar has one element.
  bool is_computed() const { return !value.values.empty() || !value.extents.empty(); }
  // The reference to judge a device's value against.
  Reference reference() const;
};

// Computes a node's outputs from its inputs (NULL if omitted). Throws std::invalid_argument if the operator or its
// error propagation is unknown, or if the inputs do not fit.
std::vector<Estimate> estimate(const NodeSpec& node, const std::vector<const Estimate*>& inputs, bool flushes);
// The estimate of a given tensor: exact, except that a device that flushes may read a subnormal number as 0. Throws
// std::invalid_argument if the elements are not real numbers.
Estimate exact_estimate(const onnx::Tensor& tensor, bool flushes = false);
// Computes the outputs of all nodes into `values`, which has one entry for each value of the graph. On entry it must
// contain the graph's inputs and the values read from the enclosing graph. Throws std::invalid_argument if the graph is
// invalid or estimate() throws for a node.
void evaluate(const GraphSpec& graph, std::vector<Estimate>& values, bool flushes);
// Returns all values of an outermost graph. Values that are not computed are empty. Throws like evaluate().
std::vector<Estimate> estimate(const GraphSpec& graph, const std::vector<onnx::Tensor>& inputs, bool flushes);

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// Turns a node into a model of its own, with generated inputs.
#pragma once

#include <memory>
#include <vector>

#include "backplane/memory.h"
#include "base/status.h"
#include "ir/graph.h"

namespace backplane {

class SingleNode {
 public:
  // Weights stay weights, borrowed from `model`, which outlives it. Unknown extents are as in place/cost.h. Inputs of
  // floating-point types are between 0.5 and 1, others 0. Errors: BP_UNSUPPORTED (a body; an input that is not a tensor
  // of numbers of known rank, or is too large).
  static Result<SingleNode> of(const model::Model& model, const model::Node& node);

  const std::shared_ptr<const model::Model>& model() const { return model_; }
  // In the order of the model's inputs; in host memory.
  const std::vector<bp_tensor_t>& inputs() const { return inputs_; }

 private:
  Status add_input(const model::Graph& graph, model::ValueId value);

  std::shared_ptr<const model::Model> model_;
  std::vector<std::vector<int64_t>> extents_;
  std::vector<std::unique_ptr<char[]>> memory_;
  std::vector<bp_tensor_t> inputs_;
};

}  // namespace backplane

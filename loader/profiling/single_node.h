// SPDX-License-Identifier: Apache-2.0
// Makes a model of a single node, with generated inputs.
#pragma once

#include <memory>
#include <vector>

#include "backplane/memory.h"
#include "base/status.h"
#include "ir/graph.h"

namespace backplane {

class SingleNode {
 public:
  // Weights stay weights; the result shares their bytes with `model` and keeps them alive. Unknown extents are chosen
  // as in place/cost.h. Inputs of floating-point types of at least 16 bits are between 0.5 and 1, others 0. Returns
  // BP_UNSUPPORTED for a node with a subgraph or a sparse attribute, for one whose inputs and outputs are too large,
  // and for an input that is not a numeric tensor of known rank.
  static Result<SingleNode> of(const model::Model& model, const model::Node& node);

  const std::shared_ptr<const model::Model>& model() const { return model_; }
  // In host memory that this object owns, in the order of the model's inputs.
  const std::vector<bp_tensor_t>& inputs() const { return inputs_; }

 private:
  Status add_input(const model::Graph& graph, model::ValueId value);

  std::shared_ptr<const model::Model> model_;
  std::vector<std::vector<int64_t>> extents_;
  std::vector<std::unique_ptr<char[]>> memory_;
  std::vector<bp_tensor_t> inputs_;
};

}  // namespace backplane

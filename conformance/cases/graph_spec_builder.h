// SPDX-License-Identifier: Apache-2.0
// Builds a graph node by node.
#pragma once

#include "cases/network.h"

namespace backplane::conform {

class GraphSpecBuilder {
 public:
  explicit GraphSpecBuilder(uint32_t opset) { spec_.opset = opset; }

  uint32_t input(bp_dtype_t dtype, Extents extents) {
    spec_.inputs.push_back(value(dtype, std::move(extents)));
    return spec_.inputs.back();
  }
  uint32_t weight(onnx::Tensor tensor) {
    const uint32_t index = value(tensor.dtype, tensor.extents);
    spec_.values[index].weight = std::move(tensor);
    return index;
  }
  // Lets this body read the value `value_there` of the enclosing graph `around`. Returns its index in this body.
  uint32_t outer(const GraphSpecBuilder& around, uint32_t value_there) {
    const ValueSpec& there = around.spec_.values[value_there];
    const uint32_t index = value(there.dtype, there.extents);
    spec_.values[index].outer = value_there;
    return index;
  }
  // Names the unknown extents of a value.
  void symbols(uint32_t index, std::vector<std::string> names) { spec_.values[index].symbols = std::move(names); }
  // Adds a node and returns the index of its first output. Further outputs have the indices after it. Throws
  // std::invalid_argument if the operator is unknown or the opset lacks it.
  uint32_t node(const std::string& op, std::vector<uint32_t> inputs, bp_dtype_t dtype, Extents extents,
                Attributes attributes = {}) {
    return node(op, std::move(inputs), {{dtype, std::move(extents)}}, std::move(attributes));
  }
  uint32_t node(const std::string& op, std::vector<uint32_t> inputs, const std::vector<ValueSpec>& outputs,
                Attributes attributes = {});
  void output(uint32_t index) { spec_.outputs.push_back(index); }

  // Returns the graph, for use as the body of a node.
  std::shared_ptr<const GraphSpec> body() && { return std::make_shared<const GraphSpec>(std::move(spec_)); }
  GraphSpec graph() && { return std::move(spec_); }

 private:
  uint32_t value(bp_dtype_t dtype, Extents extents) {
    spec_.values.push_back({dtype, std::move(extents)});
    return static_cast<uint32_t>(spec_.values.size() - 1);
  }

  GraphSpec spec_;
};

}  // namespace backplane::conform

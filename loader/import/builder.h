// SPDX-License-Identifier: Apache-2.0
// Models that a framework builds in memory. Values are numbered from 0 in the order in which they are made.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace backplane::model {

// A constant whose bytes somebody else keeps. BP_INVALID_ARGUMENT where they are not what type and extents need.
Result<Weight> lend_weight(Model& model, std::string_view label, bp_dtype_t dtype, std::span<const int64_t> dims,
                           const void* data, uint64_t bytes);

class Builder {
 public:
  // `opsets` by domain; "" and "ai.onnx" are the same.
  static Result<std::unique_ptr<Builder>> create(const std::map<std::string, uint32_t>& opsets);
  // For the body of a control-flow node. This one must outlive it.
  std::unique_ptr<Builder> create_body();

  // The dimension of that name, for Type::dims.
  uint32_t symbol(std::string_view name);
  // A graph input. In a body, a name that a graph around it has means that value, not an input.
  Result<ValueId> add_input(std::string_view name, Type type);
  // A dense constant; its bytes are borrowed until the model is gone.
  Result<ValueId> add_weight(std::string_view name, bp_dtype_t dtype, std::span<const int64_t> dims, const void* data,
                             uint64_t bytes);
  // What attributes of type TENSOR, GRAPH and TYPE hold. A body that was taken is empty afterwards.
  Result<uint32_t> add_attribute_tensor(bp_dtype_t dtype, std::span<const int64_t> dims, const void* data,
                                        uint64_t bytes);
  Result<uint32_t> add_attribute_body(Builder& body);
  uint32_t add_attribute_type(Type type);
  // `node` says operator, domain, name, inputs and attributes; its outputs are made here and numbered from the result
  // on. `names` may be shorter than `outputs`; values without a name get one.
  Result<ValueId> add_node(Node node, size_t outputs, std::span<const std::string_view> names);
  Status add_output(ValueId value);
  // The canonical model. The builder is empty afterwards.
  Result<std::shared_ptr<Model>> finish();

 private:
  Builder(std::shared_ptr<Model> model, std::unique_ptr<Graph> body, Builder* outer);
  Result<ValueId> add_value(std::string_view name, Type type);
  Result<ValueId> capture(std::string_view name);
  bool sees(std::string_view name) const;
  Status taken() const;

  std::shared_ptr<Model> model_;  // the outermost builder's; null once it was finished
  std::unique_ptr<Graph> body_;   // bodies: their graph, until a node takes it
  Builder* outer_;
  Graph* graph_;
  std::unordered_map<std::string, ValueId> names_;
};

}  // namespace backplane::model

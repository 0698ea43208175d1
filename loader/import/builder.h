// SPDX-License-Identifier: Apache-2.0
// Builds models in memory for a framework. In each graph, values are numbered from 0 in order of creation.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/keyed_hash.h"
#include "ir/graph.h"

namespace backplane::model {

// Returns a constant whose `data` the caller owns and keeps while `model` lives; it is not yet part of a graph.
// BP_INVALID_ARGUMENT if `bytes` does not match the type and extents.
Result<Weight> borrow_weight(Model& model, std::string_view label, bp_dtype_t dtype, std::span<const int64_t> dims,
                             const void* data, uint64_t bytes);

class Builder {
 public:
  // `opsets` maps domains to versions; "" and "ai.onnx" mean the same domain.
  static Result<std::unique_ptr<Builder>> create(const std::map<std::string, uint32_t>& opsets);
  // Creates a builder for the body of a control-flow node. This builder must outlive the new one.
  std::unique_ptr<Builder> create_body();

  // Adds an owner of borrowed bytes. It lives as long as the model, which belongs to the builders and, after `finish`
  // succeeded, to its caller. Must not be called after `finish`.
  Owner& add_owner();

  // Returns the symbol named `name`, for Type::dims; adds it if it is new. BP_NONE if `name` is empty.
  uint32_t symbol(std::string_view name);
  // Adds a graph input. In a body, if an outer graph has a value `name`, returns a reference to that value instead.
  Result<ValueId> add_input(std::string_view name, Type type);
  // Adds a dense constant. Its bytes are borrowed for the lifetime of the model.
  Result<ValueId> add_weight(std::string_view name, bp_dtype_t dtype, std::span<const int64_t> dims, const void* data,
                             uint64_t bytes);
  // Add the value of an attribute of type TENSOR or GRAPH, and return its index. The bytes of a tensor are
  // borrowed, as by add_weight. `body` is empty afterwards.
  Result<uint32_t> add_attribute_tensor(bp_dtype_t dtype, std::span<const int64_t> dims, const void* data,
                                        uint64_t bytes);
  Result<uint32_t> add_attribute_body(Builder& body);
  // `node` has operator, domain, name, inputs and attributes. Creates its outputs, numbered consecutively, and returns
  // the first. `names` may be shorter than `outputs`; unnamed outputs get a generated name.
  Result<ValueId> add_node(Node node, size_t outputs, std::span<const std::string_view> names);
  Status add_output(ValueId value);
  // Returns the canonical model. The builder is empty afterwards, even if the model is refused. BP_BAD_STATE for the
  // builder of a body.
  Result<std::shared_ptr<Model>> finish();

 private:
  Builder(std::shared_ptr<Model> model, std::unique_ptr<Graph> body, Builder* outer);
  Result<ValueId> add_value(std::string_view name, Type type);
  Result<ValueId> capture(std::string_view name);
  bool sees(std::string_view name) const;
  Status taken() const;

  std::shared_ptr<Model> model_;  // shared by all builders of the model; `finish` leaves it null
  std::unique_ptr<Graph> body_;   // the graph of a body's builder, until a node takes it
  Builder* outer_;
  Graph* graph_;
  std::unordered_map<std::string, ValueId, KeyedHash> names_;
};

}  // namespace backplane::model

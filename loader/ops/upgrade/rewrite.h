// SPDX-License-Identifier: Apache-2.0
// The argument of functions that rewrite a node, as upgrades do: the node, and functions that insert nodes and
// constants around it. Inserted nodes must be in the newest form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/schema/schema.h"

namespace backplane::ops {

using model::Attribute;
using model::Node;
using model::ValueId;

class Rewrite {
 public:
  Rewrite(model::Model& model, model::Graph& graph, std::vector<Node>& out, const std::vector<bool>& read, Node& node)
      : node(node), model(model), graph(graph), out_(out), read_(read) {}

  // Add a constant: a list of int64, a list of float, or an int64 scalar.
  ValueId constant(const std::vector<int64_t>& values);
  ValueId constant(const std::vector<float>& values);
  ValueId scalar(int64_t value);
  // Returns the scalar `value` with the data type of `x`: a constant if the type is fp32 or fp64, or if it is int32 or
  // int64 and int32 can hold the value; otherwise a CastLike of an fp32 constant.
  ValueId like(double value, ValueId x);
  // Inserts a node before this one and returns its first output.
  ValueId emit(std::string_view op, model::Operands inputs, std::vector<Attribute> attributes = {});
  // Inserts a node after this one. Output `slot` of this node becomes a new value; from that value and `more`, the
  // inserted node computes the value that the output had before.
  void emit_after(size_t slot, std::string_view op, const std::vector<ValueId>& more,
                  std::vector<Attribute> attributes = {});
  // Sets input `slot`. If there are too few inputs, adds omitted ones before it.
  void set_input(size_t slot, ValueId value);
  // Replaces attribute `name`, if present, by input `slot`, a list of int64.
  void to_input(std::string_view name, size_t slot);
  // Replaces the node's operator by `op`, in the form that `op` has in `opset`.
  void become(std::string_view op, uint32_t opset);

  bp_dtype_t dtype(ValueId value) const;
  int32_t rank(ValueId value) const;  // -1: unknown
  ValueId rank_of(ValueId value);     // a scalar value that holds the rank
  // Returns `value` with dimensions of extent 1 inserted at `axes` (ascending). Marks a constant as consumed.
  ValueId unsqueeze(ValueId value, const std::vector<int64_t>& axes);
  bool is_read(size_t output) const;  // whether a node or a graph output reads it
  void note(std::string problem);
  Status unsupported(std::string_view why) const;
  Status invalid(std::string_view why) const;
  std::vector<Node> take_after() { return std::move(after_); }

  Node& node;
  model::Model& model;
  model::Graph& graph;

 private:
  Node make(std::string_view op, model::Operands inputs, std::vector<Attribute> attributes);

  std::vector<Node>& out_;
  const std::vector<bool>& read_;
  std::vector<Node> after_;
};

}  // namespace backplane::ops

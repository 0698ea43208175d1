// SPDX-License-Identifier: Apache-2.0
// What an upgrade function works with: the node that it changes, and the means to put nodes and constants around it.
// What it puts there is in the newest form.
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

  // One-dimensional int64, scalars, float list.
  ValueId constant(const std::vector<int64_t>& values);
  ValueId constant(const std::vector<float>& values);
  ValueId scalar(int64_t value);
  // A scalar of the data type of `x`.
  ValueId like(double value, ValueId x);
  // Adds a node before this one; gives its first output.
  ValueId emit(std::string_view op, model::Operands inputs, std::vector<Attribute> attributes = {});
  // Puts a node after this one: it makes what output `slot` was, of what output `slot` is now and `more`.
  void emit_after(size_t slot, std::string_view op, const std::vector<ValueId>& more,
                  std::vector<Attribute> attributes = {});
  // Sets input `slot`, leaving out what lies before it.
  void set_input(size_t slot, ValueId value);
  // Turns attribute `name` (if it is there) into input `slot`, a list of int64.
  void to_input(std::string_view name, size_t slot);
  // The node becomes another operator, in its form of this opset.
  void become(std::string_view op, uint32_t opset);

  bp_dtype_t dtype(ValueId value) const;
  int32_t rank(ValueId value) const;  // -1: unknown
  ValueId rank_of(ValueId value);     // as a scalar
  ValueId unsqueeze(ValueId value, const std::vector<int64_t>& axes);
  bool is_read(size_t output) const;  // whether anybody reads that output of the node
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

// SPDX-License-Identifier: Apache-2.0
// What the rule of an operator sees of a node: its inputs as far as they are known, and where to write its outputs.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "ops/infer/infer.h"
#include "ops/schema/schema.h"
#include "ops/symbolic/scalar.h"

namespace backplane::ops {

// The elements of a small tensor, as far as they are known, in row-major order.
using Contents = std::vector<Scalar>;

// Larger tensors are not looked into.
inline constexpr size_t kMostContents = 1024;

// What inference knows of a graph beyond its types.
struct Scope {
  model::Graph& graph;
  Scope* parent = nullptr;
  uint32_t depth = 0;
  std::vector<const Contents*> contents;  // by value; null: nothing known
  std::vector<bool> is_output;            // by value
};

// What all graphs of a model share.
struct Knowledge {
  Knowledge(model::Model& model, const Inference& how) : model(model), how(how), expressions(model.graph.symbols) {}

  model::Model& model;
  const Inference& how;
  Expressions expressions;
  std::deque<Contents> contents;
  // Extents that the model declares otherwise than they follow: the first, and how many.
  std::string contradiction;
  size_t contradictions = 0;
};

class Context {
 public:
  Context(Knowledge& knowledge, Scope& scope)
      : knowledge_(knowledge), scope_(scope), expressions_(knowledge.expressions) {}

  // Takes up a node: checks its inputs against the schema and gives the outputs the types that follow from it.
  Status begin(model::Node& node);

  const model::Node& node() const { return *node_; }
  Expressions& math() { return expressions_; }

  // Inputs. One that is omitted or unknown has kind 0 and rank -1.
  size_t inputs() const { return node_->inputs.size(); }
  bool has(size_t slot) const { return node_->input(slot) != BP_NONE; }
  const model::Type& input(size_t slot) const;
  bool ranked(size_t slot) const { return input(slot).rank >= 0; }
  int64_t rank(size_t slot) const { return input(slot).rank; }
  Scalar dim(size_t slot, int64_t axis);
  Shape shape(size_t slot);  // of a ranked input
  // The elements of an integer, boolean or floating-point tensor; null if it is large or nothing is known.
  const Contents* contents(size_t slot);
  // The same where all are whole numbers.
  std::optional<std::vector<int64_t>> numbers(size_t slot);
  // The only element, where it has just one.
  std::optional<int64_t> number(size_t slot);
  // How many elements a one-dimensional input has.
  std::optional<int64_t> length(size_t slot);

  // Attributes: the node's, or else the schema's default, or else 0 or nothing.
  bool has_attribute(std::string_view name) const { return node_->find(name) != nullptr; }
  int64_t integer(std::string_view name) const;
  std::string_view text(std::string_view name) const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  const std::vector<std::string>& texts(std::string_view name) const;
  size_t count(std::string_view name) const;  // entries of a list
  const model::Weight* tensor(std::string_view name) const;
  model::Graph* subgraph(std::string_view name) const;

  // Outputs.
  size_t outputs() const { return node_->outputs.size(); }
  model::Type& output(size_t slot);  // a spare one where the node has no such output
  void set_dtype(size_t slot, bp_dtype_t dtype);
  Status set_dtype_number(size_t slot, int64_t dtype);  // from an attribute
  Status set_shape(size_t slot, const Shape& shape);
  void copy_shape(size_t slot, size_t input_slot);
  Status set_rank(size_t slot, int64_t rank);  // all extents unknown
  void set_contents(size_t slot, Contents contents);
  void copy_type(size_t slot, const model::Type& type);
  // The shape that the model declares of this output is known not to hold.
  void forget_declared_shape(size_t slot);

  // Extents. Both give `a` and `b` as one, or fail naming `what`.
  Status broadcast(const Scalar& a, const Scalar& b, Scalar& out, std::string_view what = "extents");
  Status broadcast(const Shape& a, const Shape& b, Shape& out);
  Status merge(const Scalar& a, const Scalar& b, Scalar& out, std::string_view what);
  // An axis counted from the back becomes one counted from the front.
  Status axis(int64_t value, int64_t rank, int64_t& out);
  Status axes(const std::vector<int64_t>& values, int64_t rank, std::vector<int64_t>& out);  // none twice
  Status expect_rank(size_t slot, int64_t least, int64_t most);

  // BP_INVALID_MODEL, with the node's name before the words.
  Status fail(std::string words) const;
  std::string describe(const Shape& shape) const;

  // Infers a sub-graph of the node whose inputs have been given types.
  Status infer_subgraph(model::Graph& graph);

  // What the rule found, for who writes it into the graph.
  const std::vector<Contents>& result_contents() const { return contents_; }

 private:
  struct Binding {
    std::string_view parameter;
    const model::Type* type;
  };

  Status bind(const Formal& formal, const model::Type& type, size_t slot);
  const model::Attribute* attribute(std::string_view name) const;
  const Contents* contents_of(Scope& scope, model::ValueId value);

  Knowledge& knowledge_;
  Scope& scope_;
  Expressions& expressions_;
  model::Node* node_ = nullptr;
  std::vector<Binding> bindings_;
  std::vector<model::Type> outputs_;
  std::vector<Contents> contents_;
  model::Type spare_;
};

// The elements of a constant tensor, if it is small and of a type that shape arithmetic uses.
std::optional<Contents> contents_of_weight(const model::Weight& weight);
// Whether elements of this type are followed.
bool contents_dtype(bp_dtype_t dtype);
// "sequence", "float tensor".
std::string type_text(const model::Type& type);
// Makes one type of two that describe the same value. False, and `problem` says why, where they contradict each other;
// `type` wins where both know, except that a number replaces a symbol.
bool merge_types(model::Type& type, const model::Type& other, std::string& problem);
// Makes `type` what holds for both of two types that a value may have: extents that differ become unknown. False where
// their kinds or data types differ.
bool join_types(model::Type& type, const model::Type& other);

}  // namespace backplane::ops

// SPDX-License-Identifier: Apache-2.0
// A node during inference: what is known about its inputs, and the outputs that its rule sets.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "ops/infer/infer.h"
#include "ops/schema/schema.h"
#include "ops/symbolic/scalar.h"

namespace backplane::ops {

// The elements of a small tensor in row-major order. Unknown elements are Scalar::kUnknown.
using KnownData = std::vector<Scalar>;

// Elements are tracked only in tensors with at most this many elements.
inline constexpr size_t kMaxKnownData = 1024;

// The state of inference for one graph, in addition to the types in the graph.
struct Scope {
  model::Graph& graph;
  Scope* parent = nullptr;
  uint32_t depth = 0;
  std::vector<const KnownData*> known_data;  // for each value; null: no element is known
  std::vector<bool> is_output;               // for each value
  // For each value whose elements a rule computed: the inputs of its node whose elements the rule used.
  std::unordered_map<model::ValueId, model::Operands> sources = {};
};

// Shared by all graphs of a model.
struct InferenceState {
  InferenceState(model::Model& model, const Inference& how)
      : model(model), how(how), expressions(model.graph.symbols, model.budget.get()) {}
  ~InferenceState() {
    if (model.budget) model.budget->release(charged);
  }
  InferenceState(const InferenceState&) = delete;
  InferenceState& operator=(const InferenceState&) = delete;

  // Charges the import's budget; the destructor releases the charge.
  void charge(uint64_t bytes) {
    model.charge(bytes, "inferring shapes");
    charged += bytes;
  }
  const KnownData* keep(KnownData data) {
    charge(data.size() * sizeof(Scalar));
    return &known_data.emplace_back(std::move(data));
  }

  model::Model& model;
  const Inference& how;
  Expressions expressions;
  std::deque<KnownData> known_data;
  // Declared extents that contradict the inferred ones: a description of the first such value, and the number of such
  // values.
  std::string contradiction;
  size_t contradictions = 0;
  uint64_t charged = 0;
};

class Context {
 public:
  Context(InferenceState& state, Scope& scope) : state_(state), scope_(scope), expressions_(state.expressions) {}

  // Starts a node: checks its inputs against the schema and sets the output types that the schema determines.
  Status begin(model::Node& node);

  const model::Node& node() const { return *node_; }
  Expressions& math() { return expressions_; }

  // Inputs. An input that is omitted or unknown has kind 0 and rank -1.
  size_t inputs() const { return node_->inputs.size(); }
  bool has(size_t slot) const { return node_->input(slot) != BP_NONE; }
  const model::Type& input(size_t slot) const;
  bool ranked(size_t slot) const { return input(slot).rank >= 0; }
  int64_t rank(size_t slot) const { return input(slot).rank; }
  Scalar dim(size_t slot, int64_t axis);
  Shape shape(size_t slot);  // the input must have a known rank
  // The elements of a tensor, as far as known; null if they are not tracked (kMaxKnownData, follows_data_of).
  // For rules that derive types and shapes from the elements: if the elements were computed from weights, marks these
  // weights as consumed (Weight::consumed), so that a refit cannot replace them.
  const KnownData* known_data(size_t slot);
  // The same elements, for rules that use them only to compute known elements of outputs. Marks no weights; inference
  // marks them if such an output becomes a constant.
  const KnownData* elements(size_t slot);
  // Like known_data, but nullopt unless all elements are known integers.
  std::optional<std::vector<int64_t>> numbers(size_t slot);
  // Like known_data, but returns the only element; nullopt unless there is exactly one, and it is a known integer.
  std::optional<int64_t> number(size_t slot);
  // The number of elements of a one-dimensional input; nullopt if unknown.
  std::optional<int64_t> length(size_t slot);

  // Attributes: the node's value, else the schema's default, else 0, empty or null. has_attribute ignores defaults.
  bool has_attribute(std::string_view name) const { return node_->find(name) != nullptr; }
  int64_t integer(std::string_view name) const;
  std::string_view text(std::string_view name) const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  const std::vector<std::string>& texts(std::string_view name) const;
  size_t count(std::string_view name) const;  // the number of entries of a list
  const model::Weight* tensor(std::string_view name) const;
  model::Graph* subgraph(std::string_view name) const;

  // Outputs.
  size_t outputs() const { return node_->outputs.size(); }
  model::Type& output(size_t slot);  // a dummy if the node has no such output
  void set_dtype(size_t slot, bp_dtype_t dtype);
  Status set_dtype_number(size_t slot, int64_t dtype);  // `dtype` comes from an attribute, so it is checked
  Status set_shape(size_t slot, const Shape& shape);
  void copy_shape(size_t slot, size_t input_slot);
  Status set_rank(size_t slot, int64_t rank);  // all extents unknown
  void set_known_data(size_t slot, KnownData known_data);
  void copy_type(size_t slot, const model::Type& type);
  // Discards the shape that the model declares for this output.
  void forget_declared_shape(size_t slot);
  // Returns a new id, for a node or weight that a rule adds.
  uint64_t new_id() { return state_.model.next_id++; }

  // Extents. `broadcast` combines `a` and `b` into `out` as ONNX broadcasts; `merge` combines extents that must be
  // equal. Both fail if known numbers contradict each other. The error names the extents as `what`.
  Status broadcast(const Scalar& a, const Scalar& b, Scalar& out, std::string_view what = "extents");
  Status broadcast(const Shape& a, const Shape& b, Shape& out);
  Status merge(const Scalar& a, const Scalar& b, Scalar& out, std::string_view what);
  // Converts axes that may count from the back (-1 is the last axis) to axes counted from the front.
  Status axis(int64_t value, int64_t rank, int64_t& out);
  Status axes(const std::vector<int64_t>& values, int64_t rank, std::vector<int64_t>& out);  // fails on duplicates
  // Fails if the rank of an input is known and not in this range.
  Status expect_rank(size_t slot, int64_t least, int64_t most);

  // Returns BP_INVALID_MODEL with the node's name followed by `words`.
  Status fail(std::string words) const;
  std::string describe(const Shape& shape) const;

  // Infers a subgraph of the node. The types of the subgraph's inputs must be set. (Defined in infer.cpp, because it
  // calls inference recursively.)
  Status infer_subgraph(model::Graph& graph);

  // The known elements of the outputs, and the inputs whose elements were used to compute them.
  const std::vector<KnownData>& result_known_data() const { return known_data_; }
  const model::Operands& sources() const { return sources_; }
  // Marks as consumed (Weight::consumed) all weights from which the known elements of `value` were computed.
  void consume(model::ValueId value);

 private:
  struct Binding {
    std::string_view parameter;
    const model::Type* type;
  };

  Status bind(const Formal& formal, const model::Type& type, size_t slot);
  const model::Attribute* attribute(std::string_view name) const;
  const KnownData* known_data_of(Scope& scope, model::ValueId value);

  InferenceState& state_;
  Scope& scope_;
  Expressions& expressions_;
  model::Node* node_ = nullptr;
  std::vector<Binding> bindings_;
  std::vector<model::Type> outputs_;
  std::vector<KnownData> known_data_;
  model::Operands sources_;
  model::Type spare_;
};

// The elements of a small constant tensor; nullopt if it is large or of a type that shape arithmetic does not use.
std::optional<KnownData> known_data_of_weight(const model::Weight& weight);
// Whether inference tracks elements of this data type.
bool follows_data_of(bp_dtype_t dtype);
// The type in messages, such as "sequence" or "float tensor".
std::string type_text(const model::Type& type);
// Merges another type of the same value into `type`. Where both have an extent, `type` keeps its own, except that a
// number replaces a symbol. Returns false if the types contradict each other, and describes how in `problem`.
bool merge_types(model::Type& type, const model::Type& other, std::string& problem);
// Reduces `type` to what it has in common with `other`: ranks and extents that differ become unknown, and so does the
// whole type if one of the two types is unknown. A data type that only one of them has is kept. Returns false if known
// kinds or data types differ.
bool join_types(model::Type& type, const model::Type& other);

}  // namespace backplane::ops

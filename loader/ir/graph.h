// SPDX-License-Identifier: Apache-2.0
// A model inside the loader: plain structs. The import passes edit them in turn; afterwards they are immutable.
//
//   parse → check → inline functions → lift constants → share carried values → upgrade → differentiate
//   → infer (folds) → select branches → merge legacy softmax → prune → find function calls
//   → view/view.h: the ABI's arrays
//
// A ValueId or WeightId is an index into the vector of the graph that holds it. A removed value stays as an unused
// entry. After `check`, nodes are in topological order before and after each pass.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backplane/graph.h"
#include "base/budget.h"
#include "base/status.h"
#include "ir/formula.h"
#include "ir/operands.h"

namespace backplane::ops {
struct Schema;
}

namespace backplane::model {

using WeightId = uint32_t;

// The maximum nesting of graphs. The body of an inlined function is on the level of its call. The limit exists because
// passes recurse over graphs, on threads whose stacks may have only 256 KB.
constexpr uint32_t kDeepestGraph = 32;

// The type of a value. Kind 0 is unknown; a tensor may have an unknown dtype (BP_DTYPE_UNDEFINED) or rank (-1).
struct Type {
  uint32_t kind = 0;                      // BP_KIND_*
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;  // for maps, the type of the keys
  int32_t rank = -1;
  std::vector<bp_dim_t> dims;           // `rank` entries; none if the rank is unknown
  std::shared_ptr<const Type> element;  // sequence, optional, map
};

// A constant tensor. Its bytes are borrowed from a mapped file or the caller (kept alive by Model::storage), or from
// `owned`.
struct Weight {
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  std::vector<int64_t> dims;
  const void* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<const std::vector<char>> owned;  // set if the loader created the bytes (typed data fields, folding)
  std::string file;                                // the file that contains the bytes, or empty
  uint64_t file_offset = 0;
  uint64_t id = 0;  // differs from that of all other weights of the model, except copies of this one
  // Types, shapes, other constants or the removal of a node follow from the elements, so a refit cannot replace them.
  bool consumed = false;
};

// The type of a value that holds this constant.
Type type_of(const Weight& weight);

struct Value {
  std::string name;
  Type type;
  WeightId weight = BP_NONE;  // the value's constant; BP_NONE: not a constant
  ValueId outer = BP_NONE;    // in subgraphs: the value of the enclosing graph that this one refers to
};

// Attributes of type tensor, graph or type hold indices into Graph::weights, Graph::subgraphs or
// Graph::attribute_types, respectively; a sparse tensor is three indices, as in bp_attribute_t.
struct Attribute {
  std::string name;
  uint32_t type = 0;  // BP_ATTR_*
  std::variant<std::vector<int64_t>, std::vector<float>, std::vector<std::string>, std::vector<uint32_t>> data;

  const std::vector<int64_t>& ints() const { return std::get<std::vector<int64_t>>(data); }
  const std::vector<float>& floats() const { return std::get<std::vector<float>>(data); }
  const std::vector<std::string>& strings() const { return std::get<std::vector<std::string>>(data); }
  const std::vector<uint32_t>& indices() const { return std::get<std::vector<uint32_t>>(data); }

  // Whether indices()[k] is an index into Graph::attribute_types.
  bool refers_to_type(size_t k) const {
    const bool is_sparse = type == BP_ATTR_SPARSE_TENSOR || type == BP_ATTR_SPARSE_TENSORS;
    return type == BP_ATTR_TYPE || type == BP_ATTR_TYPES || (is_sparse && k % 3 == 2);
  }

  static Attribute of(std::string name, int64_t value);
  static Attribute of(std::string name, float value);
  static Attribute of(std::string name, std::string value);
  static Attribute of(std::string name, std::vector<int64_t> values);
  static Attribute of(std::string name, std::vector<float> values);
};

struct Node {
  // Members that passes over large graphs read come first, so that they share cache lines.
  Operands inputs;  // BP_NONE: omitted
  Operands outputs;
  std::vector<Attribute> attributes;    // sorted by name
  const ops::Schema* schema = nullptr;  // null if the loader has no schema for the operator
  std::string op_type;
  std::string domain;          // "" is ai.onnx; the importer writes it that way
  uint32_t since_version = 0;  // the opset that defined this form; without a schema: the imported opset, or 1
  uint32_t call = BP_NONE;     // the innermost call whose body contains this node, an index into Graph::calls
  uint64_t id = 0;             // unique among the model's nodes; in file order, then those that passes add
  std::string name;
  std::string overload;

  const Attribute* find(std::string_view attribute) const;
  int64_t attr(std::string_view name, int64_t fallback) const;
  float attr(std::string_view name, float fallback) const;
  std::string attr(std::string_view name, const char* fallback) const;
  void set(Attribute attribute);  // adds or replaces; keeps the attributes sorted
  void erase(std::string_view attribute);
  ValueId input(size_t slot) const { return slot < inputs.size() ? inputs[slot] : BP_NONE; }
  ValueId output(size_t slot) const { return slot < outputs.size() ? outputs[slot] : BP_NONE; }
  // The node's name in errors: "node 'conv1' (Conv)" or "node #12 (Conv)".
  std::string label() const;
};

struct Symbol {
  std::string name;
  int64_t min = 0;
  int64_t max = INT64_MAX;
  uint32_t formula = BP_NONE;      // in Graph::formulas, if the extent follows from other symbols
  int64_t expected = kOpenExtent;  // the extent that cost estimates assume (formula.h)
};

// A call of one of the model's functions. A device that supports the function as a whole sees `node` instead of the
// nodes of its body.
struct Call {
  Node node;                  // inputs and outputs are values of the graph that contains the call
  uint32_t caller = BP_NONE;  // the call whose body contains this call; BP_NONE: none
  // The nodes of the body, which are consecutive; count 0: `node` cannot replace them (function_calls.cpp).
  uint32_t first = 0, count = 0;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Call> calls;  // a caller precedes the calls in its body
  std::vector<Value> values;
  std::vector<Weight> weights;
  std::vector<Symbol> symbols;    // in the outermost graph only; subgraphs use the same numbers
  std::vector<Formula> formulas;  // of these symbols
  std::vector<ValueId> inputs;    // without inputs that have a weight
  std::vector<ValueId> outputs;
  std::vector<std::unique_ptr<Graph>> subgraphs;
  std::vector<Type> attribute_types;
  Graph* parent = nullptr;

  ValueId add_value(std::string name, Type type = {});
  // Adds a constant with a copy of the bytes and returns its value.
  ValueId add_constant(std::string name, bp_dtype_t dtype, std::vector<int64_t> dims, const void* data, uint64_t bytes,
                       uint64_t id);
  ValueId add_constant(std::string name, Weight weight);
  const Weight* weight_of(ValueId value) const;  // null if the value is not a constant
};

// A function of the model. Its calls are inlined, and recorded in Graph::calls.
struct Function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // attributes without a default
  std::vector<Attribute> attribute_defaults;
  std::map<std::string, uint32_t> opsets;
  // An attribute of type 0 in the body refers to an attribute of the call: its only string is that attribute's name.
  std::unique_ptr<Graph> body;
};

class WeightHashes;

// An owner of borrowed bytes, held by Model::storage. Its destructor calls `release`, if set.
struct Owner {
  void* self = nullptr;
  void (*release)(void* self) = nullptr;
  Owner() = default;
  Owner(const Owner&) = delete;
  ~Owner() {
    if (release) release(self);
  }
};

struct Model {
  int64_t ir_version = 0;
  std::string producer, producer_version, domain, doc;
  int64_t version = 0;
  std::map<std::string, uint32_t> opsets;  // as in the file; "" is ai.onnx
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Function> functions;
  Graph graph;
  uint64_t next_id = 1;                              // next free id, for nodes and weights that passes add
  std::vector<std::shared_ptr<const void>> storage;  // mapped files and other owners of borrowed bytes
  std::vector<std::string> problems;                 // non-fatal problems, added by `note`
  std::string origin;                                // the file's path, or "<memory>", "<descriptor>" or "<built>"
  std::shared_ptr<WeightHashes> hashes;              // weight hashes (hash.h); set by canonicalize
  std::shared_ptr<Budget> budget;                    // memory and time that the import may use; null: no limit

  // Adds an owner that lives as long as the model. To avoid releasing bytes on failure, callers set `release` only
  // after the last step that can fail.
  Owner& add_owner() {
    auto owner = std::make_shared<Owner>();
    storage.push_back(owner);
    return *owner;
  }
  void charge(uint64_t bytes, std::string_view doing) {
    if (budget) budget->charge(bytes, doing);
  }
  // Adds a problem unless it is already listed. A file can cause any number of problems, so the list ends after 256.
  void note(std::string problem);
};

// The bytes that an object uses, excluding memory that it shares with other objects.
uint64_t size_of(const Type& type);
uint64_t size_of(const Attribute& attribute);
uint64_t size_of(const Node& node);

// Copies the model without the bodies of its functions. The copy shares the bytes of the weights and their hashes, and
// has a new budget with the same limits.
std::shared_ptr<Model> copy(const Model& model);

}  // namespace backplane::model

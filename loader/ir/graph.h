// SPDX-License-Identifier: Apache-2.0
// A model inside the loader: plain structs that the import's passes edit in turn, and that nobody edits afterwards.
//
//   parse → check → inline → upgrade → differentiate → infer (folds) → settle → prune → find calls
//   → view.h gives the ABI's arrays of it
//
// Ids are positions in the vectors of the graph that holds them. A removed value stays as an unused entry; nodes are
// always in topological order after `check`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backplane/graph.h"
#include "base/status.h"
#include "ir/operands.h"

namespace backplane::ops {
struct Schema;
}

namespace backplane::model {

using WeightId = uint32_t;

// The type of a value. Kind 0 is unknown; a tensor may have an unknown dtype (BP_DTYPE_UNDEFINED) or rank (-1).
struct Type {
  uint32_t kind = 0;                      // BP_KIND_*
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;  // maps: the key
  int32_t rank = -1;
  std::vector<bp_dim_t> dims;           // `rank` entries
  std::shared_ptr<const Type> element;  // sequence, optional, map
};

// A constant tensor. Its bytes are borrowed: from a mapped file or the caller (kept alive by Model::storage), or from
// `owned`.
struct Weight {
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  std::vector<int64_t> dims;
  const void* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<const std::vector<char>> owned;  // set when the loader made the bytes (typed data fields, folding)
  std::string file;                                // where they lie on disk, or empty
  uint64_t file_offset = 0;
  uint64_t id = 0;  // unique in the model
};

// The type of a value that is this constant.
Type type_of(const Weight& weight);

struct Value {
  std::string name;
  Type type;
  WeightId weight = BP_NONE;  // the constant that this value is
  ValueId outer = BP_NONE;    // sub-graphs: the value of the parent graph that this one is
};

// Tensors, graphs and types of attributes are positions in Graph::weights, Graph::subgraphs and Graph::attribute_types.
struct Attribute {
  std::string name;
  uint32_t type = 0;  // BP_ATTR_*
  std::variant<std::vector<int64_t>, std::vector<float>, std::vector<std::string>, std::vector<uint32_t>> data;

  const std::vector<int64_t>& ints() const { return std::get<std::vector<int64_t>>(data); }
  const std::vector<float>& floats() const { return std::get<std::vector<float>>(data); }
  const std::vector<std::string>& strings() const { return std::get<std::vector<std::string>>(data); }
  const std::vector<uint32_t>& indices() const { return std::get<std::vector<uint32_t>>(data); }

  static Attribute of(std::string name, int64_t value);
  static Attribute of(std::string name, float value);
  static Attribute of(std::string name, std::string value);
  static Attribute of(std::string name, std::vector<int64_t> values);
  static Attribute of(std::string name, std::vector<float> values);
};

struct Node {
  // First what passes over large graphs look at, so that it lies together.
  Operands inputs;  // BP_NONE: omitted
  Operands outputs;
  std::vector<Attribute> attributes;    // sorted by name
  const ops::Schema* schema = nullptr;  // null for foreign domains
  std::string op_type;
  std::string domain;          // "" is ai.onnx (the importer writes it so)
  uint32_t since_version = 0;  // of the form it is in now
  uint32_t call = BP_NONE;     // the innermost of Graph::calls whose body it comes from
  uint64_t id = 0;             // unique in the model, sub-graphs included; position in the file
  std::string name;
  std::string overload;

  const Attribute* find(std::string_view attribute) const;
  int64_t attr(std::string_view name, int64_t fallback) const;
  float attr(std::string_view name, float fallback) const;
  std::string attr(std::string_view name, const char* fallback) const;
  void set(Attribute attribute);  // adds or replaces, keeps the order
  void erase(std::string_view attribute);
  ValueId input(size_t slot) const { return slot < inputs.size() ? inputs[slot] : BP_NONE; }
  ValueId output(size_t slot) const { return slot < outputs.size() ? outputs[slot] : BP_NONE; }
  // "node 'conv1' (Conv)" or "node #12 (Conv)": how errors name it.
  std::string label() const;
};

struct Symbol {
  std::string name;
  int64_t min = 0;
  int64_t max = INT64_MAX;
};

// A call of one of the model's functions. Its body stands in the graph, as adjacent nodes; a device that claims the
// function whole sees `node` in their place.
struct Call {
  Node node;                      // inputs and outputs are values of the graph that the call stands in
  uint32_t caller = BP_NONE;      // the call whose body it stands in
  uint32_t first = 0, count = 0;  // nodes of the body; none: it cannot stand for them (calls.cpp)
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Call> calls;  // a caller comes before what it calls
  std::vector<Value> values;
  std::vector<Weight> weights;
  std::vector<Symbol> symbols;  // of the outermost graph only; sub-graphs use the same numbers
  std::vector<ValueId> inputs;  // without those that are weights
  std::vector<ValueId> outputs;
  std::vector<std::unique_ptr<Graph>> subgraphs;
  std::vector<Type> attribute_types;
  Graph* parent = nullptr;

  ValueId add_value(std::string name, Type type = {});
  // A value that is a new constant of these bytes (copied).
  ValueId add_constant(std::string name, bp_dtype_t dtype, std::vector<int64_t> dims, const void* data, uint64_t bytes,
                       uint64_t id);
  ValueId add_constant(std::string name, Weight weight);
  const Weight* weight_of(ValueId value) const;  // null where the value is no constant
};

// A function of the model: its calls are inlined before anything else, and kept beside (Graph::calls).
struct Function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // required ones
  std::vector<Attribute> attribute_defaults;
  std::map<std::string, uint32_t> opsets;
  std::unique_ptr<Graph> body;  // attribute references: Attribute of type 0 with one string, the outer name
};

class WeightHashes;

struct Model {
  int64_t ir_version = 0;
  std::string producer, producer_version, domain, doc;
  int64_t version = 0;
  std::map<std::string, uint32_t> opsets;  // as in the file; "" is ai.onnx
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Function> functions;
  Graph graph;
  uint64_t next_id = 1;                              // for nodes and weights that passes add
  std::vector<std::shared_ptr<const void>> storage;  // mapped files and other owners of borrowed bytes
  std::vector<std::string> problems;                 // what the checker noticed but could live with
  std::string origin;                                // the file's path, or "<memory>"
  std::shared_ptr<WeightHashes> hashes;              // hash.h; set by canonicalize
};

// The same model once more, without the bodies of its functions. Weights are shared.
std::shared_ptr<Model> copy(const Model& model);

}  // namespace backplane::model

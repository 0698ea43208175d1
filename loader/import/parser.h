// SPDX-License-Identifier: Apache-2.0
// Internals of the parser: one method for each message type. Methods throw Malformed, Budget::Exhausted, an exception
// of protozero, or std::bad_alloc or length_error; parse() converts each to a Status. Only the parser's own files
// include this header.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/keyed_hash.h"
#include "base/names.h"
#include "import/external.h"
#include "import/wire.h"
#include "ir/graph.h"
#include "ir/name_table.h"

namespace backplane::model {

using wire::is_bytes;
using wire::is_fixed32;
using wire::is_fixed64;
using wire::is_varint;

struct Malformed {
  Status status;
};

[[noreturn]] inline void malformed(std::string text) {
  throw Malformed{Status(BP_INVALID_MODEL, std::move(text))};
}

// The names that a graph declares, as views of the model's bytes. Other names are looked up in the outer graphs.
struct Scope {
  Graph& graph;
  Scope* outer;
  NameTable names;
};

// For a correct model that is beyond a limit of the loader.
[[noreturn]] inline void unsupported(std::string text) {
  throw Malformed{Status(BP_UNSUPPORTED, std::move(text))};
}

struct NamedWeight {
  std::string_view name;
  Weight weight;
};

class Parser {
 public:
  Parser(Model& model, std::string_view bytes, std::string file, ExternalFiles& external)
      : model_(model), bytes_(bytes), file_(std::move(file)), external_(external) {}

  void parse_model();

 private:
  using Reader = wire::Reader;
  // The maximum nesting of messages: graphs in attributes, types in types.
  static constexpr int kDepth = kDeepestGraph;

  // Charges `bytes` bytes to the model's budget.
  void charge(uint64_t bytes) { model_.budget->charge(bytes, "reading the file"); }

  // parse_model.cpp
  void parse_opset(Reader reader, std::map<std::string, uint32_t>& opsets);
  Function parse_function(Reader reader);

  // parse_graph.cpp
  void parse_graph(Reader reader, Graph& graph, Scope* outer, int depth);
  void parse_nodes(const std::vector<Reader>& nodes, Scope& scope, int depth);
  void declare_outputs(Reader node, Scope& scope, std::vector<ValueId>& made);
  ValueId declare(std::string_view name, Scope& scope);
  ValueId resolve(std::string_view name, Scope& scope);
  enum class Names {
    kOwn,    // a graph's input: hides a value of that name in outer graphs
    kAny,    // a graph's output: may be a value of an outer graph
    kKnown,  // any other value: ignored if the graph does not declare its name
  };
  ValueId parse_value_info(Reader reader, Scope& scope, Names names, int depth);
  void add_initializer(NamedWeight tensor, Scope& scope);
  // `made` points to this node's outputs in an array of the outputs of all nodes. Advances it to the next node's
  // outputs.
  void parse_node(Reader reader, Scope& scope, const ValueId*& made, int depth);
  Attribute parse_attribute(Reader reader, Scope& scope, bool dense, int depth);
  Type parse_type(Reader reader, int depth);
  void parse_shape(Reader reader, Type& type);
  uint32_t symbol(std::string_view name);

  // parse_tensor.cpp
  NamedWeight parse_tensor(Reader reader);
  NamedWeight parse_sparse(Reader reader);
  // Returns the values and the indices as two tensors.
  std::pair<Weight, Weight> parse_sparse_parts(Reader reader, std::vector<int64_t>& dims, std::string_view& name);
  uint32_t add_weight(Graph& graph, Weight weight);

  // Reads a string field. It must be UTF-8, because tools print it.
  static std::string_view text(Reader& reader, const char* what);

  Model& model_;
  std::string_view bytes_;
  std::string file_;
  ExternalFiles& external_;
  std::unordered_map<std::string_view, uint32_t, KeyedHash> symbols_;
  uint64_t next_node_ = 0;
  uint64_t next_weight_ = 0;
};

}  // namespace backplane::model

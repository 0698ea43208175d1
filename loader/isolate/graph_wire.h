// SPDX-License-Identifier: Apache-2.0
// Graphs in messages from the loader to a backend's process. A message contains the arrays of every graph of a tree:
// the outermost graph and all graphs inside it. The bytes of weights that are large or not in memory yet are not sent:
// the backend's process requests them when it needs them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/graph.h"
#include "isolate/descriptor.h"
#include "isolate/message.h"

namespace backplane::isolate {

// All graphs of a tree in the order in which `write_graph` writes them: each graph before the graphs inside it. Both
// sides use the index in this list as the graph's number.
using Graphs = std::vector<const bp_graph_t*>;

// Writes the whole tree to which `subject` belongs, and the index of `subject`. Returns the graphs in this order.
Graphs write_graph(const bp_graph_t& subject, Writer& out);

// The requests to the loader that the functions of a graph make. All may be called from any thread.
class GraphService {
 public:
  virtual ~GraphService() = default;
  virtual Result<Mapping> weight(uint32_t graph, uint32_t weight, uint64_t bytes) = 0;
  virtual void weight_consumed(uint32_t graph, uint32_t weight) = 0;
  virtual Status weight_hash(uint32_t graph, uint32_t weight, uint64_t out_hash[2]) = 0;
  virtual Status serialize(uint32_t graph, uint64_t external_above, bp_text_sink_t sink, void* context) = 0;
};

// A tree of graphs that was read from a message, in the form that plugins use.
class WireGraph {
 public:
  // Reads `bytes`, which `write_graph` wrote, and checks the indices in it. BP_CORRUPT if it is damaged. `service` must
  // outlive the tree.
  static Result<std::unique_ptr<WireGraph>> read(std::string bytes, GraphService& service);
  ~WireGraph();

  const bp_graph_t* subject() const { return subject_; }

 private:
  struct Part;
  WireGraph(std::string bytes, GraphService& service);
  bool read_part(Reader& in, uint32_t depth, Part* parent);
  bool check(const Part& part) const;
  static const bp_graph_api_t& api();

  std::string bytes_;  // the texts of the graphs point into it
  GraphService& service_;
  std::vector<std::unique_ptr<Part>> parts_;
  const bp_graph_t* subject_ = nullptr;
};

}  // namespace backplane::isolate

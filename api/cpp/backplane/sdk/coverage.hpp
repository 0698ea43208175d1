// SPDX-License-Identifier: Apache-2.0
// A device's verdicts on nodes, and the sink that receives them. Most backends use an operator table: sdk/table.hpp.
#pragma once

#include <memory>
#include <vector>

#include "backplane/sdk/host.hpp"

namespace backplane::sdk {

using view::Graph;
using view::Node;
using view::Value;

// A bp_verdict_t that owns its message and ranges.
struct Verdict {
  uint32_t answer = BP_ANSWER_NO;
  uint32_t reason = BP_REASON_NONE;
  std::string detail;
  double seconds = 0;              // expected time; 0 if unknown
  float confidence = 0;            // how far to trust `seconds`: 0 to 1, as in bp_verdict_t
  uint32_t compute_types = 0;      // BP_COMPUTE_* in which the device computes the node; 0: the node's own type
  uint64_t bytes = 0;              // device memory, without inputs and outputs
  std::vector<bp_range_t> ranges;  // BP_ANSWER_YES holds only for extents in these ranges; empty: for all extents
};

inline Verdict yes(double seconds = 0, float confidence = 0) {
  Verdict verdict;
  verdict.answer = BP_ANSWER_YES;
  verdict.seconds = seconds;
  verdict.confidence = confidence;
  return verdict;
}

// The verdict that the node is not supported. `detail` states the value that was found and what is supported.
inline Verdict no(uint32_t reason, std::string detail) {
  Verdict verdict;
  verdict.reason = reason;
  verdict.detail = std::move(detail);
  return verdict;
}

// A bp_group_t that owns its nodes and name: nodes that would run as one kernel.
struct Group {
  std::vector<uint32_t> nodes;
  std::string name;
  double seconds = 0;          // expected time of the whole group; 0 if unknown
  uint32_t flags = 0;          // BP_GROUP_*
  float confidence = 0;        // how far to trust `seconds`: 0 to 1
  uint32_t compute_types = 0;  // BP_COMPUTE_* in which the device computes the group
  uint64_t bytes = 0;          // device memory
};

// A coverage query: its nodes, and the sink for verdicts. Verdicts are delivered in batches while the query runs,
// groups at the end.
class Coverage {
 public:
  Coverage(const Host& host, const bp_coverage_query_t& query, const bp_coverage_sink_t& sink)
      : host_(host), query_(query), sink_(sink), graph_(&required(query.graph, "query.graph")) {}

  const Graph& graph() const { return graph_; }
  uint32_t compute_types() const { return query_.compute_types; }  // BP_COMPUTE_* that are allowed
  Options options() const { return {query_.options, query_.option_count, query_.option_stride}; }
  uint32_t node_count() const { return query_.nodes == nullptr ? graph_.node_count() : query_.node_count; }
  // Throws BP_INVALID_ARGUMENT if the query names a node that the graph does not have.
  Node node(uint32_t i) const {
    const uint32_t index = query_.nodes == nullptr ? i : query_.nodes[i];
    if (index >= graph_.node_count())
      throw Error(BP_INVALID_ARGUMENT, "query.nodes[" + std::to_string(i) + "] is " + std::to_string(index) +
                                           ", but the graph has " + std::to_string(graph_.node_count()) + " nodes");
    return graph_.node(index);
  }
  void check_cancelled() const { host_.check(query_.cancel); }

  void answer(const Node& node, Verdict verdict) {
    constexpr size_t kBatch = 256;  // a batch fits in the processor's caches
    verdicts_.emplace_back(node.index(), std::move(verdict));
    if (verdicts_.size() >= kBatch) deliver_verdicts();
  }
  void group(Group group) { groups_.push_back(std::move(group)); }

  void deliver() {
    deliver_verdicts();
    std::vector<bp_group_t> groups;
    for (const Group& g : groups_) {
      bp_group_t out{};
      out.nodes = g.nodes.data();
      out.node_count = static_cast<uint32_t>(g.nodes.size());
      out.flags = g.flags;
      out.seconds = g.seconds;
      out.bytes = g.bytes;
      out.compute_types = g.compute_types;
      out.confidence = g.confidence;
      out.name = text(g.name);
      groups.push_back(out);
    }
    if (!groups.empty()) {
      if (sink_.groups == nullptr) throw Error(BP_INVALID_ARGUMENT, "sink.groups is NULL");
      sink_.groups(sink_.self, groups.data(), static_cast<uint32_t>(groups.size()), sizeof(bp_group_t));
    }
  }

 private:
  void deliver_verdicts() {
    abi_.clear();
    for (const auto& [index, v] : verdicts_) {
      bp_verdict_t out{};
      out.node = index;
      out.answer = v.answer == BP_ANSWER_YES && !v.ranges.empty() ? BP_ANSWER_CONDITIONAL : v.answer;
      out.reason = v.reason;
      out.compute_types = v.compute_types;
      out.detail = text(v.detail);
      out.seconds = v.seconds;
      out.bytes = v.bytes;
      out.confidence = v.confidence;
      out.ranges = v.ranges.data();
      out.range_count = static_cast<uint32_t>(v.ranges.size());
      abi_.push_back(out);
    }
    if (!abi_.empty())
      sink_.verdicts(sink_.self, abi_.data(), static_cast<uint32_t>(abi_.size()), sizeof(bp_verdict_t));
    verdicts_.clear();
  }

  const Host& host_;
  const bp_coverage_query_t& query_;
  const bp_coverage_sink_t& sink_;
  Graph graph_;
  std::vector<std::pair<uint32_t, Verdict>> verdicts_;  // not delivered yet
  std::vector<bp_verdict_t> abi_;                       // the batch that is being delivered
  std::vector<Group> groups_;
};

}  // namespace backplane::sdk

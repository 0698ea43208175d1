// SPDX-License-Identifier: Apache-2.0
// Restricts the CPU backend's verdicts to those that the script allows.
#include <algorithm>
#include <cstring>

#include "partial_backend/device.h"

namespace backplane::partial {
namespace {

using sdk::Error;

std::string_view op_of(const bp_graph_t& graph, uint32_t node) {
  const bp_text_t op = bp_graph_node(&graph, node)->op_type;
  return {op.data, op.size};
}

struct Sink {
  const bp_coverage_sink_t* host;
  const bp_graph_t* graph;
  const Script* script;
  std::vector<uint32_t> claimed = {};

  // Whether only the device can infer the type of the node's output, and the host has not queried it yet. The CPU
  // backend refuses such a node.
  bool lacks_type(uint32_t index) const {
    const bp_node_t& node = *bp_graph_node(graph, index);
    return Translated::is_same(node) &&
           bp_graph_type(graph, bp_graph_value(graph, bp_node_output(graph, &node, 0))->type)->kind == 0;
  }
  bool claims(uint32_t node) const { return script->claims(op_of(*graph, node), bp_graph_node(graph, node)->id); }

  static void BP_CALL verdicts(void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t stride) {
    Sink& sink = *static_cast<Sink*>(self);
    for (uint32_t i = 0; i < count; ++i) {
      bp_verdict_t verdict = sdk::element(verdicts, i, stride);
      if (sink.lacks_type(verdict.node)) verdict.answer = BP_ANSWER_YES;
      if (verdict.answer != BP_ANSWER_NO) {
        if (auto seconds = sink.script->cost(bp_graph_node(sink.graph, verdict.node)->id)) verdict.seconds = *seconds;
        if (!sink.claims(verdict.node)) {
          verdict.answer = BP_ANSWER_NO;
          verdict.reason = BP_REASON_OPERATOR;
          verdict.detail = {"not in the script", 17};
        }
      }
      if (verdict.answer != BP_ANSWER_NO) sink.claimed.push_back(verdict.node);
      sink.host->verdicts(sink.host->self, &verdict, 1, sizeof verdict);
    }
  }

  // Forwards a group if all its nodes are allowed, and drops it otherwise.
  static void BP_CALL groups(void* self, const bp_group_t* groups, uint32_t count, uint32_t stride) {
    const Sink& sink = *static_cast<Sink*>(self);
    for (uint32_t i = 0; i < count; ++i) {
      const auto* group =
          reinterpret_cast<const bp_group_t*>(reinterpret_cast<const char*>(groups) + uint64_t{i} * stride);
      if (std::all_of(group->nodes, group->nodes + group->node_count, [&](uint32_t n) { return sink.claims(n); }))
        sink.host->groups(sink.host->self, group, 1, stride);
    }
  }
};

bp_status_t BP_CALL query(bp_device_t* handle, const bp_coverage_query_t* query, const bp_coverage_sink_t* sink,
                          bp_error_t* error) {
  return fence(error, [&] {
    of(handle).called();
    Device& device = of(handle);
    ++device.counters().queries_begun;
    if (device.script().held == "query") wait_for_test(device.counters());
    device.check();
    Sink own{sink, query->graph, &device.script()};
    bp_coverage_sink_t passed{};
    passed.size = sizeof passed;
    passed.self = &own;
    passed.verdicts = Sink::verdicts;
    passed.groups = Sink::groups;
    bp_coverage_query_t asked = sdk::read(query, "query");
    asked.options = nullptr;
    asked.option_count = 0;
    const Translated translated(*query->graph);
    asked.graph = translated.graph();
    pass(cpu->coverage->query(device.inner, &asked, &passed, error));
    if (!device.script().groups || own.claimed.empty()) return;
    bp_group_t all{};
    all.nodes = own.claimed.data();
    all.node_count = static_cast<uint32_t>(own.claimed.size());
    all.name = {"all", 3};
    sink->groups(sink->self, &all, 1, sizeof all);
  });
}

bp_status_t BP_CALL review(bp_device_t* handle, const bp_compile_t* what, bp_review_t* out, bp_error_t* error) {
  return fence(error, [&] {
    of(handle).called();
    const bp_graph_t* island = what->graph;
    const Script& script = of(handle).script();
    out->answer = BP_REVIEW_ACCEPT;
    std::vector<std::vector<uint32_t>> parts(1);
    bool cut = script.resplit;
    for (uint32_t i = 0; i < island->node_count; ++i) {
      const std::string_view op = op_of(*island, i);
      if (contains(script.reject, op)) {
        out->answer = BP_REVIEW_REJECT;
        out->reason = BP_REASON_OTHER;
        sdk::report(error, BP_OK, "the script rejects " + std::string(op));
        return;
      }
      const bool gives_back = contains(script.split, op);
      if (gives_back || parts.back().size() >= script.max_nodes) {
        cut = true;
        if (!parts.back().empty()) parts.emplace_back();
      }
      if (!gives_back) parts.back().push_back(i);
    }
    if (!cut) return;
    out->answer = BP_REVIEW_SPLIT;
    out->reason = BP_REASON_OTHER;
    for (const auto& part : parts)
      if (!part.empty()) out->split(out->split_self, part.data(), static_cast<uint32_t>(part.size()));
  });
}

bp_status_t BP_CALL infer(bp_device_t* handle, const bp_infer_t* what, const bp_infer_sink_t* sink, bp_error_t* error) {
  return fence(error, [&] {
    of(handle).called();
    const bp_graph_t& graph = *what->graph;
    if (what->node >= graph.node_count)
      throw Error(BP_INVALID_ARGUMENT, "node " + std::to_string(what->node) + " does not exist: the graph has " +
                                           std::to_string(graph.node_count) + " nodes");
    const bp_node_t& node = *bp_graph_node(&graph, what->node);
    if (!Translated::is_same(node))
      throw Error(BP_UNSUPPORTED, "only types of org.backplane.test Same are inferred, not of " +
                                      std::string(op_of(graph, what->node)));
    const bp_value_t* const input = bp_graph_value(&graph, bp_node_input(&graph, &node, 0));
    const bp_type_t& type = *bp_graph_type(&graph, input->type);
    sink->output(sink->self, 0, type.dtype, type.rank, graph.dims + type.first_dim);
  });
}

const bp_opset_t kOpsets[] = {{{"", 0}, 1000, 0}, {{"ai.onnx.ml", 10}, 1000, 0}};

bp_status_t BP_CALL opsets(bp_device_t* handle, bp_opsets_t* out, bp_error_t* error) {
  return fence(error, [&] {
    of(handle).called();
    bp_opsets_t own{};
    own.opsets = kOpsets;
    own.opset_count = 2;
    own.opset_stride = sizeof(bp_opset_t);
    write(out, own);
  });
}

}  // namespace

const bp_coverage_api_t kCoverageApi = {
    .size = sizeof(bp_coverage_api_t),
    .newest_opset_count = 2,
    .newest_opsets = kOpsets,
    .newest_opset_stride = sizeof(bp_opset_t),
    .query = query,
    .review = review,
    .infer = infer,
    .opsets = opsets,
};

}  // namespace backplane::partial

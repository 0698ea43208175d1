// SPDX-License-Identifier: Apache-2.0
#include "coverage/coverage.h"

#include <algorithm>
#include <cstring>

#include "abi.h"

namespace backplane {
namespace {

// The host's end of bp_coverage_sink_t: copies what it is given and distrusts every index.
struct Sink {
  const bp_graph_t& graph;
  DeviceCoverage& coverage;

  static bool holds(const bp_graph_t& graph, const bp_range_t& range) {
    if (range.symbol >= graph.symbol_count) return false;
    const bp_symbol_t& symbol = *bp_graph_symbol(&graph, range.symbol);
    return range.min <= symbol.min && symbol.max <= range.max;
  }

  void verdict(const bp_verdict_t& given) {
    if (given.node >= coverage.nodes.size() || coverage.view->too_new(given.node)) return;
    NodeVerdict& verdict = coverage.nodes[given.node];
    verdict.answer = given.answer;
    verdict.reason = given.answer == BP_ANSWER_NO ? given.reason : BP_REASON_NONE;
    verdict.precision = given.precision;
    verdict.confidence = given.confidence;
    verdict.seconds = given.seconds > 0 ? given.seconds : 0;
    verdict.bytes = given.bytes;
    if (given.detail.data) verdict.detail.assign(given.detail.data, std::min<uint64_t>(given.detail.size, 1000));
    if (given.answer == BP_ANSWER_YES || given.answer == BP_ANSWER_NO) return;
    bool always = given.answer == BP_ANSWER_CONDITIONAL && given.ranges;
    for (uint32_t i = 0; always && i < given.range_count; ++i) always = holds(graph, given.ranges[i]);
    if (!always) {
      verdict.answer = BP_ANSWER_NO;
      verdict.reason = BP_REASON_SHAPE;
      if (verdict.detail.empty()) verdict.detail = "only for some extents of the model's free dimensions";
    }
  }

  void group(const bp_group_t& given) {
    NodeGroup group;
    for (uint32_t i = 0; given.nodes && i < given.node_count; ++i) {
      if (given.nodes[i] >= coverage.nodes.size()) return;
      group.nodes.push_back(given.nodes[i]);
    }
    std::ranges::sort(group.nodes);
    group.nodes.erase(std::ranges::unique(group.nodes).begin(), group.nodes.end());
    group.atomic = given.flags & BP_GROUP_ATOMIC;
    group.seconds = given.seconds > 0 ? given.seconds : 0;
    if (given.name.data) group.name.assign(given.name.data, std::min<uint64_t>(given.name.size, 1000));
    if (!group.nodes.empty()) coverage.groups.push_back(std::move(group));
  }
};

Result<DeviceCoverage> ask_one(const std::shared_ptr<const model::Model>& model, Device& device,
                               const CoverageOptions& options) {
  const Backend& backend = device.backend();
  DeviceCoverage coverage;
  coverage.device = &device;
  BP_ASSIGN(coverage.handle, device.open());
  coverage.view = model::View::whole(model, backend.newest_opsets);
  const bp_graph_t& graph = *coverage.view->abi();
  coverage.nodes.resize(graph.node_count);
  for (uint32_t i = 0; i < graph.node_count; ++i)
    if (coverage.view->too_new(i)) coverage.nodes[i].reason = BP_REASON_OPSET;

  Sink self{graph, coverage};
  bp_coverage_sink_t sink{};
  sink.size = sizeof sink;
  sink.self = &self;
  sink.verdicts = [](void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t stride) {
    for (uint32_t i = 0; i < count; ++i) static_cast<Sink*>(self)->verdict(abi::element(verdicts, i, stride));
  };
  sink.groups = [](void* self, const bp_group_t* groups, uint32_t count, uint32_t stride) {
    for (uint32_t i = 0; i < count; ++i) static_cast<Sink*>(self)->group(abi::element(groups, i, stride));
  };

  std::vector<bp_option_t> told;
  if (auto found = options.options.find(backend.id); found != options.options.end()) told = abi_options(found->second);
  bp_coverage_query_t query{};
  query.size = sizeof query;
  query.precision = options.precision;
  query.graph = &graph;
  query.options = told.data();
  query.option_count = static_cast<uint32_t>(told.size());
  query.option_stride = sizeof(bp_option_t);
  query.cancel = options.cancel;
  PluginError error;
  const bp_status_t code = backend.plugin->coverage->query(coverage.handle, &query, &sink, error.get());
  BP_TRY(error.status(code, "device '" + device.name() + "': coverage query failed"));

  for (uint32_t i = 0; i < graph.node_count; ++i) {
    NodeVerdict& verdict = coverage.nodes[i];
    if (verdict.usable() || !verdict.detail.empty()) continue;
    const model::Node& node = model->graph.nodes[coverage.view->graph_node(i)];
    if (verdict.reason == BP_REASON_OPSET)
      verdict.detail = node.op_type + " in its form of version " + std::to_string(node.since_version) + " is newer than this backend knows";
    else if (verdict.reason == BP_REASON_OPERATOR)
      verdict.detail = "operator " + node.op_type + " is not known";
  }
  return coverage;
}

}  // namespace

std::vector<bp_option_t> abi_options(const Host::Options& options) {
  std::vector<bp_option_t> out;
  for (const auto& [name, value] : options) out.push_back({abi::text(name), abi::text(value)});
  return out;
}

Result<std::vector<DeviceCoverage>> ask(const std::shared_ptr<const model::Model>& model, const std::vector<Device*>& devices,
                                        const CoverageOptions& options) {
  std::vector<DeviceCoverage> all;
  for (Device* device : devices) {
    BP_ASSIGN(DeviceCoverage coverage, ask_one(model, *device, options));
    all.push_back(std::move(coverage));
  }
  return all;
}

std::string_view reason_name(uint32_t reason) {
  constexpr std::string_view names[] = {"",         "operator", "opset",     "dtype",    "shape", "attribute", "constant",
                                        "memory",   "precision", "subgraph", "cost",     "policy", "other"};
  return reason < std::size(names) ? names[reason] : "other";
}

}  // namespace backplane

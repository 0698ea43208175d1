// SPDX-License-Identifier: Apache-2.0
#include "coverage/coverage.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "abi.h"

namespace backplane {
namespace {

// The host's end of bp_coverage_sink_t: copies what it is given and distrusts every index.
struct Sink {
  const bp_graph_t& graph;
  std::vector<NodeVerdict>& nodes;
  std::vector<NodeGroup>& groups;
  std::vector<bool> too_new = std::vector<bool>(nodes.size(), false);

  static bool holds(const bp_graph_t& graph, const bp_range_t& range) {
    if (range.symbol >= graph.symbol_count) return false;
    const bp_symbol_t& symbol = *bp_graph_symbol(&graph, range.symbol);
    return range.min <= symbol.min && symbol.max <= range.max;
  }

  void verdict(const bp_verdict_t& given) {
    if (given.node >= nodes.size() || too_new[given.node]) return;
    NodeVerdict& verdict = nodes[given.node];
    verdict.answer = given.answer;
    verdict.reason = given.answer == BP_ANSWER_NO ? given.reason : BP_REASON_NONE;
    verdict.precision = given.precision;
    verdict.confidence = given.confidence;
    verdict.seconds = given.seconds > 0 && std::isfinite(given.seconds) ? given.seconds : 0;
    verdict.source = verdict.seconds > 0 ? Source::kBackend : Source::kEstimate;
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
      if (given.nodes[i] >= nodes.size()) return;
      group.nodes.push_back(given.nodes[i]);
    }
    std::ranges::sort(group.nodes);
    group.nodes.erase(std::ranges::unique(group.nodes).begin(), group.nodes.end());
    group.atomic = given.flags & BP_GROUP_ATOMIC;
    group.seconds = given.seconds > 0 ? given.seconds : 0;
    if (given.name.data) group.name.assign(given.name.data, std::min<uint64_t>(given.name.size, 1000));
    if (!group.nodes.empty()) groups.push_back(std::move(group));
  }
};

class Asker {
 public:
  Asker(const Device& device, bp_device_t* handle, const CoverageOptions& options, const Host::Options& own)
      : device_(device), handle_(handle), options_(options), told_(abi_options(own)) {}

  Status ask(Sink& self) const {
    bp_coverage_sink_t sink{};
    sink.size = sizeof sink;
    sink.self = &self;
    sink.verdicts = [](void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t stride) {
      for (uint32_t i = 0; i < count; ++i) static_cast<Sink*>(self)->verdict(abi::element(verdicts, i, stride));
    };
    sink.groups = [](void* self, const bp_group_t* groups, uint32_t count, uint32_t stride) {
      for (uint32_t i = 0; i < count; ++i) static_cast<Sink*>(self)->group(abi::element(groups, i, stride));
    };
    bp_coverage_query_t query{};
    query.size = sizeof query;
    query.precision = options_.precision;
    query.graph = &self.graph;
    query.options = told_.data();
    query.option_count = static_cast<uint32_t>(told_.size());
    query.option_stride = sizeof(bp_option_t);
    query.cancel = options_.cancel;
    PluginError error;
    const bp_status_t code = device_.backend().plugin->coverage->query(handle_, &query, &sink, error.get());
    return error.status(code, "device '" + device_.name() + "': coverage query failed");
  }

  // Why the device cannot take a node for the sake of its bodies: "node 'x' (Op) in its body: ...". Empty where it can.
  Result<std::string> ask_bodies(const bp_graph_t& graph, const bp_node_t& node) const {
    for (uint32_t a = node.first_attribute; a < node.first_attribute + node.attribute_count; ++a) {
      const bp_attribute_t& attribute = *bp_graph_attribute(&graph, a);
      if (attribute.type != BP_ATTR_GRAPH && attribute.type != BP_ATTR_GRAPHS) continue;
      for (uint32_t k = 0; k < attribute.count; ++k) {
        const bp_graph_t& body = *graph.subgraphs[static_cast<const uint32_t*>(attribute.data)[k]];
        BP_ASSIGN(std::string refusal, ask_body(body));
        if (!refusal.empty()) return refusal;
      }
    }
    return std::string();
  }

 private:
  Result<std::string> ask_body(const bp_graph_t& body) const {
    std::vector<NodeVerdict> nodes(body.node_count);
    std::vector<NodeGroup> groups;
    Sink sink{body, nodes, groups};
    BP_TRY(ask(sink));
    for (uint32_t i = 0; i < body.node_count; ++i) {
      const bp_node_t& node = *bp_graph_node(&body, i);
      if (!nodes[i].usable()) {
        std::string text = "in its body " + abi::string(node.op_type);
        if (node.name.size) text += " '" + abi::string(node.name) + "'";
        return text + " (" + std::string(reason_name(nodes[i].reason)) +
               "): " + (nodes[i].detail.empty() ? "not taken" : nodes[i].detail);
      }
      BP_ASSIGN(std::string refusal, ask_bodies(body, node));
      if (!refusal.empty()) return refusal;
    }
    return std::string();
  }

  const Device& device_;
  bp_device_t* handle_;
  const CoverageOptions& options_;
  const std::vector<bp_option_t> told_;
};

// A refusal without words gets some.
void explain(const model::Node& node, NodeVerdict& verdict) {
  if (verdict.usable() || !verdict.detail.empty()) return;
  if (verdict.reason == BP_REASON_OPSET)
    verdict.detail = node.op_type + " in its form of version " + std::to_string(node.since_version) +
                     " is newer than this backend knows";
  else if (verdict.reason == BP_REASON_OPERATOR)
    verdict.detail = "operator " + node.op_type + " is not known";
}

Result<DeviceCoverage> ask_one(const std::shared_ptr<const model::Model>& model, Device& device,
                               const CoverageOptions& options) {
  const Backend& backend = device.backend();
  DeviceCoverage coverage;
  coverage.device = &device;
  BP_ASSIGN(coverage.handle, device.open());
  coverage.view = model::View::whole(model, backend.newest_opsets);
  const bp_graph_t& graph = *coverage.view->abi();
  coverage.nodes.resize(graph.node_count);

  const auto found = options.options.find(backend.id);
  const Host::Options own = found == options.options.end() ? Host::Options() : found->second;
  const Asker asker(device, coverage.handle, options, own);
  Sink sink{graph, coverage.nodes, coverage.groups};
  for (uint32_t i = 0; i < graph.node_count; ++i)
    if (coverage.view->too_new(i)) sink.too_new[i] = true, coverage.nodes[i].reason = BP_REASON_OPSET;
  BP_TRY(asker.ask(sink));
  for (uint32_t i = 0; i < graph.node_count; ++i) {
    NodeVerdict& verdict = coverage.nodes[i];
    if (verdict.usable()) {
      BP_ASSIGN(std::string refusal, asker.ask_bodies(graph, *bp_graph_node(&graph, i)));
      if (refusal.empty()) continue;
      verdict.answer = BP_ANSWER_NO;
      verdict.reason = BP_REASON_SUBGRAPH;
      verdict.detail = std::move(refusal);
    }
    explain(model->graph.nodes[coverage.view->graph_node(i)], verdict);
  }
  if (options.costs == Costs::kTold) return coverage;
  coverage.profile = std::make_shared<Profile>(Profile::of(device, own));
  recall(model->graph, options.precision, coverage);
  return coverage;
}

}  // namespace

void recall(const model::Graph& graph, uint32_t precision, DeviceCoverage& coverage) {
  if (coverage.profile->empty()) return;
  for (size_t i = 0; i < coverage.nodes.size(); ++i) {
    NodeVerdict& verdict = coverage.nodes[i];
    if (!verdict.usable()) continue;
    const auto seconds = coverage.profile->find(profile_key(graph, graph.nodes[i], precision));
    if (!seconds) continue;
    verdict.seconds = *seconds;
    verdict.source = Source::kMeasured;
    verdict.confidence = 1;
  }
}

std::vector<bp_option_t> abi_options(const Host::Options& options) {
  std::vector<bp_option_t> out;
  for (const auto& [name, value] : options) out.push_back({abi::text(name), abi::text(value)});
  return out;
}

Result<std::vector<DeviceCoverage>> ask(const std::shared_ptr<const model::Model>& model,
                                        const std::vector<Device*>& devices, const CoverageOptions& options) {
  std::vector<DeviceCoverage> all;
  for (Device* device : devices) {
    BP_ASSIGN(DeviceCoverage coverage, ask_one(model, *device, options));
    all.push_back(std::move(coverage));
  }
  return all;
}

std::string_view source_name(Source source) {
  constexpr std::string_view names[] = {"estimate", "backend", "measured"};
  return names[static_cast<size_t>(source)];
}

std::string_view reason_name(uint32_t reason) {
  constexpr std::string_view names[] = {"",       "operator",  "opset",    "dtype", "shape",  "attribute", "constant",
                                        "memory", "precision", "subgraph", "cost",  "policy", "other"};
  return reason < std::size(names) ? names[reason] : "other";
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
#include "coverage/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/abi.h"
#include "base/callback.h"
#include "base/coverage_limits.h"
#include "host/cancel.h"
#include "ops/schema/schema.h"

namespace backplane {
namespace {

// Whether the loader has no schemas for the node's domain, as for domains of vendors and of a model's own functions.
bool is_foreign(const bp_node_t& node) {
  return node.domain.size && ops::newest_opset(abi::view(node.domain)) == 0;
}

// The detail of a refusal for which the backend sent none.
constexpr std::string_view kNoReason = "not supported; the backend gave no reason";

// Implements bp_coverage_sink_t: copies the device's verdicts and checks every index.
struct VerdictSink {
  const bp_graph_t& graph;
  std::vector<NodeVerdict>& nodes;
  std::vector<NodeGroup>& groups;
  uint32_t allowed = 0;  // BP_COMPUTE_* that the session allows
  std::vector<bool> too_new = std::vector<bool>(nodes.size(), false);
  std::vector<uint32_t> forbidden = {};  // nodes of atomic groups that would compute in a type that is not allowed
  uint64_t verdicts = 0;                 // given so far
  uint64_t bytes = 0;                    // taken by the groups so far, approximately
  std::string wrong = {};                // describes an answer beyond the limits; empty: none
  CallbackGuard callbacks = {};

  static bool holds(const bp_graph_t& graph, const bp_range_t& range) {
    if (range.symbol >= graph.symbol_count) return false;
    const bp_symbol_t& symbol = *bp_graph_symbol(&graph, range.symbol);
    return range.min <= symbol.min && symbol.max <= range.max;
  }

  void verdict(const bp_verdict_t& given) {
    const uint64_t most = kMaxVerdictsPerNode * nodes.size() + kMaxVerdictsPerNode;
    if (++verdicts > most) {
      wrong = fmt::format("more than {} verdicts for {} nodes", most, nodes.size());
      return;
    }
    if (given.ranges && given.range_count > kMaxVerdictRanges) {
      wrong = fmt::format("{} ranges for a node; at most {} are accepted", given.range_count, kMaxVerdictRanges);
      return;
    }
    if (given.node >= nodes.size() || too_new[given.node]) return;
    NodeVerdict& verdict = nodes[given.node];
    verdict.answer = given.answer;
    verdict.reason = given.answer == BP_ANSWER_NO ? given.reason : BP_REASON_NONE;
    verdict.compute_types = given.compute_types;
    verdict.confidence = given.confidence;
    verdict.seconds = given.seconds > 0 && std::isfinite(given.seconds) ? given.seconds : 0;
    verdict.source = verdict.seconds > 0 ? Source::kBackend : Source::kEstimate;
    verdict.bytes = given.bytes;
    if (given.detail.data) verdict.detail.assign(given.detail.data, std::min(given.detail.size, kMaxAnswerTextBytes));
    if (given.answer == BP_ANSWER_NO) return;
    if (given.compute_types & ~allowed) return forbid(given.node);
    if (given.answer == BP_ANSWER_YES) return;
    bool always = given.answer == BP_ANSWER_CONDITIONAL && given.ranges;
    for (uint32_t i = 0; always && i < given.range_count; ++i) always = holds(graph, given.ranges[i]);
    if (!always) {
      verdict.answer = BP_ANSWER_NO;
      verdict.reason = BP_REASON_SHAPE;
      if (verdict.detail.empty()) verdict.detail = "only for some extents of the model's free dimensions";
    }
  }

  // The node would be computed in a type that the session does not allow.
  void forbid(uint32_t node) {
    nodes[node].answer = BP_ANSWER_NO;
    nodes[node].reason = BP_REASON_PRECISION;
    nodes[node].detail = "it would compute in a type that the session does not allow";
  }

  void group(const bp_group_t& given) {
    if (given.nodes && given.node_count > kMaxGroupNodes) {
      wrong = fmt::format("a group of {} nodes; at most {} are accepted", given.node_count, kMaxGroupNodes);
      return;
    }
    bytes += sizeof(NodeGroup) + uint64_t{given.node_count} * sizeof(uint32_t) +
             std::min(given.name.size, kMaxAnswerTextBytes);
    if (bytes > kMaxAnswerBytes) {
      wrong = fmt::format("groups of more than {} MiB", kMaxAnswerBytes >> 20);
      return;
    }
    NodeGroup group;
    for (uint32_t i = 0; given.nodes && i < given.node_count; ++i) {
      if (given.nodes[i] >= nodes.size()) return;
      group.nodes.push_back(given.nodes[i]);
    }
    std::ranges::sort(group.nodes);
    group.nodes.erase(std::unique(group.nodes.begin(), group.nodes.end()), group.nodes.end());
    group.atomic = given.flags & BP_GROUP_ATOMIC;
    if (given.compute_types & ~allowed) {
      if (group.atomic) forbidden.insert(forbidden.end(), group.nodes.begin(), group.nodes.end());
      return;
    }
    group.seconds = given.seconds > 0 && std::isfinite(given.seconds) ? given.seconds : 0;
    if (given.name.data) group.name.assign(given.name.data, std::min(given.name.size, kMaxAnswerTextBytes));
    if (!group.nodes.empty()) groups.push_back(std::move(group));
  }
};

class CoverageQuery {
 public:
  CoverageQuery(const Device& device, bp_device_t* handle, const CoverageOptions& options, const Host::Options& own)
      : device_(device), handle_(handle), options_(options), options_abi_(abi_options(own)) {}

  // Queries `nodes`, or all nodes if it is empty.
  Status run(VerdictSink& self, std::span<const uint32_t> nodes = {}) const {
    if (cancelled(options_.cancel))
      return {BP_CANCELLED, "cancelled while devices were being queried for what they support"};
    if (device_.given_up()) return device_.lost();
    bp_coverage_sink_t sink{};
    sink.size = sizeof sink;
    sink.self = &self;
    sink.verdicts = [](void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t stride) {
      VerdictSink& sink = *static_cast<VerdictSink*>(self);
      sink.callbacks.run([&] {
        for (uint32_t i = 0; verdicts && i < count && sink.wrong.empty(); ++i)
          sink.verdict(abi::element(verdicts, i, stride));
      });
    };
    sink.groups = [](void* self, const bp_group_t* groups, uint32_t count, uint32_t stride) {
      VerdictSink& sink = *static_cast<VerdictSink*>(self);
      sink.callbacks.run([&] {
        for (uint32_t i = 0; groups && i < count && sink.wrong.empty(); ++i)
          sink.group(abi::element(groups, i, stride));
      });
    };
    bp_coverage_query_t query{};
    query.size = sizeof query;
    query.compute_types = options_.compute_types;
    query.graph = &self.graph;
    query.nodes = nodes.empty() ? nullptr : nodes.data();
    query.node_count = static_cast<uint32_t>(nodes.size());
    query.options = options_abi_.data();
    query.option_count = static_cast<uint32_t>(options_abi_.size());
    query.option_stride = sizeof(bp_option_t);
    query.cancel = options_.cancel;
    self.allowed = options_.compute_types;
    PluginError error;
    const bp_status_t code = device_.backend().plugin->coverage->query(handle_, &query, &sink, error.get());
    self.callbacks.rethrow();
    if (code == BP_OK && !self.wrong.empty())
      return {BP_INTERNAL, "device '" + device_.name() + "': its plugin returned " + self.wrong};
    for (const uint32_t node : self.forbidden)
      if (self.nodes[node].usable()) self.forbid(node);
    return error.status(code, "device '" + device_.name() + "': coverage query failed");
  }

  // Finds the calls of functions that the device supports as a whole.
  Result<model::WholeCalls> claim_calls(const std::shared_ptr<const model::Model>& model) const {
    model::WholeCalls offered = model::all_calls(*model);
    std::set<uint64_t> taken, refused;
    while (!offered.empty()) {
      const auto view = model::View::whole(model, device_.newest(), offered);
      BP_TRY(offer(*view->abi(), offered, taken, refused));
      if (std::erase_if(offered, [&](uint64_t id) { return refused.contains(id); }) == 0) break;
    }
    return model::WholeCalls(taken.begin(), taken.end());
  }

  // Returns why the device does not support a node's subgraphs, such as "in its body Exp 'x' (operator): …"; empty if
  // it supports them. Adds the foreign nodes in them that the device supports to `foreign`.
  Result<std::string> query_bodies(const bp_graph_t& graph, const bp_node_t& node, std::set<uint64_t>& foreign) const {
    std::string refusal;
    for (uint32_t a = node.first_attribute; a < node.first_attribute + node.attribute_count; ++a) {
      const bp_attribute_t& attribute = *bp_graph_attribute(&graph, a);
      if (attribute.type != BP_ATTR_GRAPH && attribute.type != BP_ATTR_GRAPHS) continue;
      for (uint32_t k = 0; k < attribute.count; ++k) {
        const bp_graph_t& body = *graph.subgraphs[static_cast<const uint32_t*>(attribute.data)[k]];
        BP_ASSIGN(std::string found, query_body(body, foreign));
        if (refusal.empty()) refusal = std::move(found);
      }
    }
    return refusal;
  }

 private:
  // Queries the device for the `offered` calls in a graph and its subgraphs that are not in `taken` yet, and adds each
  // to `taken` or `refused`.
  Status offer(const bp_graph_t& graph, const model::WholeCalls& offered, std::set<uint64_t>& taken,
               std::set<uint64_t>& refused) const {
    std::vector<uint32_t> calls;
    for (uint32_t i = 0; i < graph.node_count; ++i) {
      const uint64_t id = bp_graph_node(&graph, i)->id;
      if (std::ranges::binary_search(offered, id) && !taken.contains(id)) calls.push_back(i);
    }
    if (!calls.empty()) {
      std::vector<NodeVerdict> nodes(graph.node_count);
      std::vector<NodeGroup> groups;
      VerdictSink sink{graph, nodes, groups};
      BP_TRY(run(sink, calls));
      for (const uint32_t i : calls) (nodes[i].usable() ? taken : refused).insert(bp_graph_node(&graph, i)->id);
    }
    for (uint32_t k = 0; k < graph.subgraph_count; ++k) BP_TRY(offer(*graph.subgraphs[k], offered, taken, refused));
    return {};
  }

  Result<std::string> query_body(const bp_graph_t& body, std::set<uint64_t>& foreign) const {
    std::vector<NodeVerdict> nodes(body.node_count);
    std::vector<NodeGroup> groups;
    VerdictSink sink{body, nodes, groups};
    BP_TRY(run(sink));
    std::string refusal;
    for (uint32_t i = 0; i < body.node_count; ++i) {
      const bp_node_t& node = *bp_graph_node(&body, i);
      if (nodes[i].usable()) {
        if (is_foreign(node)) foreign.insert(node.id);
        BP_ASSIGN(std::string found, query_bodies(body, node, foreign));
        if (refusal.empty()) refusal = std::move(found);
      } else if (refusal.empty()) {
        refusal = "in its body " + abi::string(node.op_type);
        if (node.name.size) refusal += " '" + abi::string(node.name) + "'";
        refusal += " (" + std::string(reason_name(nodes[i].reason)) +
                   "): " + (nodes[i].detail.empty() ? std::string(kNoReason) : nodes[i].detail);
      }
    }
    return refusal;
  }

  const Device& device_;
  bp_device_t* handle_;
  const CoverageOptions& options_;
  const std::vector<bp_option_t> options_abi_;
};

// Adds a text to a refusal that has none.
void explain(const bp_node_t& node, NodeVerdict& verdict) {
  if (verdict.usable() || !verdict.detail.empty()) return;
  const std::string op = abi::string(node.op_type);
  if (verdict.reason == BP_REASON_OPSET)
    verdict.detail =
        op + " in its form of version " + std::to_string(node.since_version) + " is newer than this backend supports";
  else if (verdict.reason == BP_REASON_OPERATOR)
    verdict.detail = "operator " + op + " is not known";
  else
    verdict.detail = kNoReason;
}

// Copies a verdict on a node of the view to every graph node that it represents. (A call represents all nodes of its
// body.)
void note(const model::Graph& graph, const bp_node_t& node, model::View::Nodes in_graph, const NodeVerdict& verdict,
          DeviceCoverage& coverage) {
  if (graph.nodes[in_graph.first].id == node.id) {
    coverage.nodes[in_graph.first] = verdict;
    return;
  }
  NodeGroup call{{}, true, verdict.seconds, abi::string(node.op_type)};
  for (uint32_t i = in_graph.first; i < in_graph.first + in_graph.count; ++i) {
    coverage.nodes[i] = verdict;
    coverage.nodes[i].call = node.id;
    coverage.nodes[i].seconds /= in_graph.count;
    call.nodes.push_back(i);
  }
  if (verdict.usable()) coverage.groups.push_back(std::move(call));
}

Result<DeviceCoverage> query_one(const std::shared_ptr<const model::Model>& model, Device& device,
                                 const CoverageOptions& options) {
  const Backend& backend = device.backend();
  DeviceCoverage coverage;
  coverage.device = &device;
  BP_ASSIGN(coverage.handle, device.open());
  const auto found = options.options.find(backend.id);
  const Host::Options own = found == options.options.end() ? Host::Options() : found->second;
  const CoverageQuery query(device, coverage.handle, options, own);
  BP_ASSIGN(coverage.calls, query.claim_calls(model));
  const auto view = model::View::whole(model, coverage.device->newest(),
                                       coverage.calls);  // shows calls as single nodes, as the backend sees them
  const bp_graph_t& graph = *view->abi();

  std::vector<NodeVerdict> verdicts(graph.node_count);
  std::vector<NodeGroup> groups;
  VerdictSink sink{graph, verdicts, groups};
  for (uint32_t i = 0; i < graph.node_count; ++i) {
    if (!view->too_new(i)) continue;
    sink.too_new[i] = true;
    verdicts[i].reason = BP_REASON_OPSET;
    verdicts[i].detail = view->why_too_new(i);
  }
  BP_TRY(query.run(sink));
  // A call stands for all nodes of its body, so a small answer may become a large one.
  uint64_t expanded = 0;
  const auto expand = [&](uint64_t bytes) -> Status {
    if ((expanded += bytes) <= kMaxAnswerBytes) return {};
    return {BP_INTERNAL,
            fmt::format(
                "device '{}': its plugin returned an answer of more than {} MiB, with the bodies of the calls in it",
                device.name(), kMaxAnswerBytes >> 20)};
  };
  if (!coverage.calls.empty()) coverage.nodes.resize(model->graph.nodes.size());
  for (uint32_t i = 0; i < graph.node_count; ++i) {
    const bp_node_t& node = *bp_graph_node(&graph, i);
    NodeVerdict& verdict = verdicts[i];
    if (verdict.usable()) {
      if (is_foreign(node)) coverage.foreign.insert(node.id);
      BP_ASSIGN(std::string refusal, query.query_bodies(graph, node, coverage.foreign));
      if (!refusal.empty()) {
        verdict.answer = BP_ANSWER_NO;
        verdict.reason = BP_REASON_SUBGRAPH;
        verdict.detail = std::move(refusal);
      }
    }
    explain(node, verdict);
    if (coverage.calls.empty()) continue;
    BP_TRY(expand(uint64_t{view->graph_nodes(i).count} * verdict.detail.size()));
    note(model->graph, node, view->graph_nodes(i), verdict, coverage);
  }
  if (coverage.calls.empty())
    coverage.nodes = std::move(verdicts);  // without calls, the view's nodes are the graph's nodes
  for (NodeGroup& group : groups) {
    std::vector<uint32_t> in_graph;
    for (const uint32_t i : group.nodes) {
      const auto [first, count] = view->graph_nodes(i);
      BP_TRY(expand(uint64_t{count} * sizeof(uint32_t)));
      for (uint32_t n = first; n < first + count; ++n) in_graph.push_back(n);
    }
    group.nodes = std::move(in_graph);
    coverage.groups.push_back(std::move(group));
  }
  if (options.costs == Costs::kReported) return coverage;
  coverage.profile = std::make_shared<Profile>(Profile::of(device, own));
  recall(model->graph, options.compute_types, coverage);
  return coverage;
}

}  // namespace

void recall(const model::Graph& graph, uint32_t compute_types, DeviceCoverage& coverage) {
  if (coverage.profile->empty()) return;
  for (size_t i = 0; i < coverage.nodes.size(); ++i) {
    NodeVerdict& verdict = coverage.nodes[i];
    if (!verdict.usable() || verdict.call != BP_NO_NODE) continue;
    const auto seconds = coverage.profile->find(profile_key(graph, graph.nodes[i], compute_types));
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

Result<std::vector<DeviceCoverage>> query_devices(const std::shared_ptr<const model::Model>& model,
                                                  const std::vector<Device*>& devices, const CoverageOptions& options) {
  std::vector<DeviceCoverage> all;
  for (Device* device : devices) {
    BP_ASSIGN(DeviceCoverage coverage, query_one(model, *device, options));
    all.push_back(std::move(coverage));
  }
  return all;
}

std::string_view source_name(Source source) {
  constexpr std::string_view kNames[] = {"estimate", "backend", "measured"};
  return kNames[static_cast<size_t>(source)];
}

std::string_view reason_name(uint32_t reason) {
  constexpr std::string_view kNames[] = {"",       "operator",  "opset",    "dtype", "shape",  "attribute", "constant",
                                         "memory", "precision", "subgraph", "cost",  "policy", "other"};
  return reason < std::size(kNames) ? kNames[reason] : "other";
}

}  // namespace backplane

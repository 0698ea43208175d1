// SPDX-License-Identifier: Apache-2.0
// Coverage, review and inference. The plugin may use the graph only during the call.
#include <algorithm>
#include <cstring>
#include <map>

#include "base/abi.h"
#include "base/callback.h"
#include "base/coverage_limits.h"
#include "discover/call.h"
#include "isolate/serve/server.h"

namespace backplane::isolate {
namespace {

std::string_view cut(bp_text_t text) {
  return text.data ? std::string_view(text.data, std::min(text.size, kMaxAnswerTextBytes)) : std::string_view();
}

// Reads the graph, which is the last part of the message.
Result<std::unique_ptr<WireGraph>> read_graph(Reader& in, GraphService& service) {
  if (!in.ok()) return unreadable_request();
  return WireGraph::read(std::string(in.rest()), service);
}

// Queries the plugin's coverage of a graph's nodes and appends the verdicts and groups to `out`. Appends to
// `out_supported` (may be null) the index of each node that the plugin supports.
Status query_plugin(const bp_plugin_t& plugin, bp_device_t* device, const bp_coverage_query_t& query, Writer& out,
                    std::vector<uint32_t>* out_supported) {
  struct Collected {
    Writer verdicts, groups;
    std::vector<uint32_t>* supported;
    uint64_t verdict_count = 0, group_count = 0;
    std::string wrong;  // describes an impossible count that the plugin passed; empty: none
    CallbackGuard callbacks;
    bool full() const { return verdicts.bytes().size() + groups.bytes().size() > kMaxAnswerBytes; }
  } collected{{}, {}, out_supported, 0, 0, {}, {}};
  bp_coverage_sink_t sink{};
  sink.size = sizeof sink;
  sink.self = &collected;
  sink.verdicts = [](void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t stride) {
    Collected& to = *static_cast<Collected*>(self);
    to.callbacks.run([&] {
      for (uint32_t i = 0; verdicts && i < count && !to.full(); ++i) {
        const bp_verdict_t verdict = abi::element(verdicts, i, stride);
        if (verdict.ranges && verdict.range_count > kMaxVerdictRanges) {
          to.wrong = std::to_string(verdict.range_count) + " ranges for a node; at most " +
                     std::to_string(kMaxVerdictRanges) + " are accepted";
          return;
        }
        to.verdicts.put(verdict.node).put(verdict.answer).put(verdict.reason).put(verdict.compute_types);
        to.verdicts.text(cut(verdict.detail)).put(verdict.seconds).put(verdict.bytes).put(verdict.confidence);
        to.verdicts.array(verdict.ranges, verdict.ranges ? verdict.range_count : 0);
        if (to.supported && verdict.answer != BP_ANSWER_NO) to.supported->push_back(verdict.node);
        ++to.verdict_count;
      }
    });
  };
  sink.groups = [](void* self, const bp_group_t* groups, uint32_t count, uint32_t stride) {
    Collected& to = *static_cast<Collected*>(self);
    to.callbacks.run([&] {
      for (uint32_t i = 0; groups && i < count && !to.full(); ++i) {
        const bp_group_t group = abi::element(groups, i, stride);
        if (group.nodes && group.node_count > kMaxGroupNodes) {
          to.wrong = "a group of " + std::to_string(group.node_count) + " nodes; at most " +
                     std::to_string(kMaxGroupNodes) + " are accepted";
          return;
        }
        to.groups.array(group.nodes, group.nodes ? group.node_count : 0).put(group.flags).put(group.seconds);
        to.groups.put(group.bytes).put(group.compute_types).put(group.confidence).text(cut(group.name));
        ++to.group_count;
      }
    });
  };
  PluginError error;
  const bp_status_t code =
      call_plugin(error, [&] { return plugin.coverage->query(device, &query, &sink, error.get()); });
  collected.callbacks.rethrow();
  if (code != BP_OK) return Status::reported(code, error.get());
  if (!collected.wrong.empty()) return {BP_INTERNAL, "its plugin returned " + collected.wrong};
  if (collected.full()) return {BP_INTERNAL, "its plugin returned more than 64 MiB of verdicts and groups"};
  out.put(collected.verdict_count).append(collected.verdicts.bytes());
  out.put(collected.group_count).append(collected.groups.bytes());
  return {};
}

// The coverage of the bodies (subgraphs) of nodes that the plugin supports, and of the bodies inside these. It is sent
// with the coverage of the root graph, because otherwise the loader would query each body separately, and send the
// whole tree of graphs with each query.
class Bodies {
 public:
  Bodies(const bp_plugin_t& plugin, bp_device_t* device, const bp_graph_t& root) : plugin_(plugin), device_(device) {
    number(root);
  }

  void add(const bp_coverage_query_t& query, const std::vector<uint32_t>& supported) {
    const bp_graph_t& graph = *query.graph;
    for (const uint32_t n : supported) {
      if (n >= graph.node_count) continue;
      const bp_node_t& node = *bp_graph_node(&graph, n);
      for (uint32_t a = node.first_attribute; a < node.first_attribute + node.attribute_count; ++a) {
        const bp_attribute_t& attribute = *bp_graph_attribute(&graph, a);
        if (attribute.type != BP_ATTR_GRAPH && attribute.type != BP_ATTR_GRAPHS) continue;
        for (uint32_t k = 0; k < attribute.count; ++k)
          add_body(query, *graph.subgraphs[static_cast<const uint32_t*>(attribute.data)[k]]);
      }
    }
  }
  // Appends the number of bodies and, for each, the number of its graph, and the size and bytes of its coverage.
  void write(Writer& out) const { out.put(count_).append(answers_.bytes()); }

 private:
  // Numbers the graphs in the order of write_graph.
  void number(const bp_graph_t& graph) {
    numbers_.emplace(&graph, static_cast<uint32_t>(numbers_.size()));
    for (uint32_t i = 0; i < graph.subgraph_count; ++i) number(*graph.subgraphs[i]);
  }
  // Adds nothing if the query fails, or if the coverage of all bodies would exceed half of kMaxAnswerBytes. The loader
  // then queries this body itself, and receives the error of that query.
  void add_body(bp_coverage_query_t query, const bp_graph_t& body) {
    const auto own = numbers_.extract(&body);  // a plugin may repeat a node
    if (own.empty()) return;
    query.graph = &body;
    Writer answer;
    std::vector<uint32_t> supported;
    if (!query_plugin(plugin_, device_, query, answer, &supported).ok()) return;
    if (answers_.bytes().size() + answer.bytes().size() > kMaxAnswerBytes / 2) return;
    answers_.put(own.mapped()).text(answer.bytes());
    ++count_;
    add(query, supported);
  }

  const bp_plugin_t& plugin_;
  bp_device_t* device_;
  std::map<const bp_graph_t*, uint32_t> numbers_;
  Writer answers_;
  uint64_t count_ = 0;
};

}  // namespace

Status Server::coverage(Lane& lane, Message& request, Writer& out) const {
  Reader in(request.bytes);
  BP_ASSIGN(const auto device, this->device(in));
  const bool cancellable = in.get<uint32_t>();
  const OptionTexts texts = read_options(in);
  const std::vector<bp_option_t> options = abi_options(texts);
  bp_coverage_query_t query{};
  query.size = sizeof query;
  query.compute_types = in.get<uint32_t>();
  const bool some = in.get<uint32_t>();
  const std::vector<uint32_t> nodes = in.array<uint32_t>();
  GraphLane service;
  const GraphLane::During during(service, lane);
  BP_ASSIGN(const auto graph, read_graph(in, service));
  query.graph = graph->subject();
  for (const uint32_t node : nodes)
    if (node >= query.graph->node_count) return unreadable_request();
  query.nodes = some ? nodes.data() : nullptr;
  query.node_count = static_cast<uint32_t>(nodes.size());
  query.options = options.data();
  query.option_count = static_cast<uint32_t>(options.size());
  query.option_stride = sizeof(bp_option_t);
  query.cancel = cancellable ? lane.token() : nullptr;
  std::vector<uint32_t> supported;
  const bool is_whole = !some && query.graph->parent == nullptr;
  BP_TRY(query_plugin(tables_->plugin, device->handle, query, out, is_whole ? &supported : nullptr));
  if (!is_whole) {
    out.put<uint64_t>(0);
    return {};
  }
  Bodies bodies(tables_->plugin, device->handle, *query.graph);
  bodies.add(query, supported);
  bodies.write(out);
  return {};
}

Status Server::review(Lane& lane, Message& request, Writer& out) const {
  Reader in(request.bytes);
  BP_ASSIGN(const auto device, this->device(in));
  const bool cancellable = in.get<uint32_t>();
  const OptionTexts texts = read_options(in);
  const std::vector<bp_option_t> options = abi_options(texts);
  bp_compile_t compile{};
  compile.size = sizeof compile;
  compile.compute_types = in.get<uint32_t>();
  compile.flags = in.get<uint32_t>();
  GraphLane service;
  const GraphLane::During during(service, lane);
  BP_ASSIGN(const auto graph, read_graph(in, service));
  const bp_coverage_api_t& api = *tables_->plugin.coverage;
  if (!api.review) return {BP_UNSUPPORTED, "its plugin has no `review`"};
  compile.graph = graph->subject();
  compile.options = options.data();
  compile.option_count = static_cast<uint32_t>(options.size());
  compile.option_stride = sizeof(bp_option_t);
  compile.cancel = cancellable ? lane.token() : nullptr;
  struct Parts {
    Writer nodes;
    uint64_t count = 0;
    CallbackGuard callbacks;
  } parts;
  bp_review_t review{};
  review.size = sizeof review;
  review.split_self = &parts;
  review.split = [](void* self, const uint32_t* nodes, uint32_t count) {
    Parts& to = *static_cast<Parts*>(self);
    if (to.nodes.bytes().size() > kMaxAnswerBytes || (count && !nodes)) return;
    to.callbacks.run([&] {
      to.nodes.array(nodes, count);
      ++to.count;
    });
  };
  PluginError error;
  const bp_status_t code =
      call_plugin(error, [&] { return api.review(device->handle, &compile, &review, error.get()); });
  parts.callbacks.rethrow();
  if (code != BP_OK) return Status::reported(code, error.get());
  out.put(review.answer).put(review.reason).put(review.seconds).put(review.bytes).text(error.text());
  out.put(parts.count).append(parts.nodes.bytes());
  return {};
}

Status Server::infer(Lane& lane, Message& request, Writer& out) const {
  Reader in(request.bytes);
  BP_ASSIGN(const auto device, this->device(in));
  const bool cancellable = in.get<uint32_t>();
  const OptionTexts texts = read_options(in);
  const std::vector<bp_option_t> options = abi_options(texts);
  bp_infer_t infer{};
  infer.size = sizeof infer;
  infer.node = in.get<uint32_t>();
  GraphLane service;
  const GraphLane::During during(service, lane);
  BP_ASSIGN(const auto graph, read_graph(in, service));
  const bp_coverage_api_t& api = *tables_->plugin.coverage;
  if (!api.infer) return {BP_UNSUPPORTED, "its plugin has no `infer`"};
  infer.graph = graph->subject();
  if (infer.node >= infer.graph->node_count) return unreadable_request();
  infer.options = options.data();
  infer.option_count = static_cast<uint32_t>(options.size());
  infer.option_stride = sizeof(bp_option_t);
  infer.cancel = cancellable ? lane.token() : nullptr;
  struct Outputs {
    Writer written;
    uint64_t count = 0;
    CallbackGuard callbacks;
  } outputs;
  bp_infer_sink_t sink{};
  sink.size = sizeof sink;
  sink.self = &outputs;
  sink.output = [](void* self, uint32_t slot, bp_dtype_t dtype, int32_t rank, const bp_dim_t* dims) {
    Outputs& to = *static_cast<Outputs*>(self);
    if (rank > BP_MAX_RANK || (rank > 0 && !dims) || to.written.bytes().size() > kMaxAnswerBytes) return;
    to.callbacks.run([&] {
      to.written.put(slot).put(dtype).put(rank).array(dims, rank > 0 ? static_cast<uint64_t>(rank) : 0);
      ++to.count;
    });
  };
  PluginError error;
  const bp_status_t code = call_plugin(error, [&] { return api.infer(device->handle, &infer, &sink, error.get()); });
  outputs.callbacks.rethrow();
  if (code != BP_OK) return Status::reported(code, error.get());
  out.put(outputs.count).append(outputs.written.bytes());
  return {};
}

}  // namespace backplane::isolate

// SPDX-License-Identifier: Apache-2.0
// Coverage, review and inference. The plugin may use the graph only during the call.
#include <algorithm>
#include <cstring>

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
  struct Collected {
    Writer verdicts, groups;
    uint64_t verdict_count = 0, group_count = 0;
    std::string wrong;  // describes an impossible count that the plugin passed; empty: none
    CallbackGuard callbacks;
    bool full() const { return verdicts.bytes().size() + groups.bytes().size() > kMaxAnswerBytes; }
  } collected;
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
  const bp_coverage_api_t& api = *tables_->plugin.coverage;
  const bp_status_t code = call_plugin(error, [&] { return api.query(device->handle, &query, &sink, error.get()); });
  collected.callbacks.rethrow();
  if (code != BP_OK) return Status::reported(code, error.get());
  if (!collected.wrong.empty()) return {BP_INTERNAL, "its plugin returned " + collected.wrong};
  if (collected.full()) return {BP_INTERNAL, "its plugin returned more than 64 MiB of verdicts and groups"};
  out.put(collected.verdict_count).append(collected.verdicts.bytes());
  out.put(collected.group_count).append(collected.groups.bytes());
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

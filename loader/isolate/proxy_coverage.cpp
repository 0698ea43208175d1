// SPDX-License-Identifier: Apache-2.0
#include "isolate/proxy_coverage.h"

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/abi.h"
#include "isolate/answers.h"
#include "isolate/proxy_call.h"
#include "isolate/proxy_device.h"

namespace backplane::isolate {
namespace {

// Calls an operation of the device on a graph. `request` writes the fields between the cancel flag and the graph.
Result<std::string> ask(ProxyDevice& device, Operation operation, const std::function<void(Writer&)>& request,
                        const bp_graph_t* graph, const bp_cancel_t* cancel, Remote& out_remote) {
  if (!graph) return Status(BP_INVALID_ARGUMENT, "the graph is NULL");
  Writer out, written;
  out.put<uint32_t>(cancel != nullptr);
  request(out);
  const Graphs graphs = write_graph(*graph, written);
  GraphAnswers answers(graphs);
  return device.call(operation, out.take() + written.take(), device.backend.long_patience(cancel), &answers,
                     out_remote);
}

// Reads the verdicts and groups of one graph and passes them to `sink`. If they cannot be read, `in` is not OK
// afterwards, and `sink` is not called.
void pass_on(Reader& in, const bp_coverage_sink_t& sink) {
  std::vector<bp_verdict_t> verdicts(in.count(52));
  std::deque<std::vector<bp_range_t>> ranges;
  for (bp_verdict_t& verdict : verdicts) {
    for (uint32_t* field : {&verdict.node, &verdict.answer, &verdict.reason, &verdict.compute_types})
      *field = in.get<uint32_t>();
    verdict.detail = abi::text(in.text());
    verdict.seconds = in.get<double>();
    verdict.bytes = in.get<uint64_t>();
    verdict.confidence = in.get<float>();
    ranges.push_back(in.array<bp_range_t>());
    verdict.ranges = ranges.back().data();
    verdict.range_count = static_cast<uint32_t>(ranges.back().size());
  }
  std::vector<bp_group_t> groups(in.count(44));
  std::deque<std::vector<uint32_t>> members;
  for (bp_group_t& group : groups) {
    members.push_back(in.array<uint32_t>());
    group.nodes = members.back().data();
    group.node_count = static_cast<uint32_t>(members.back().size());
    group.flags = in.get<uint32_t>();
    group.seconds = in.get<double>();
    group.bytes = in.get<uint64_t>();
    group.compute_types = in.get<uint32_t>();
    group.confidence = in.get<float>();
    group.name = abi::text(in.text());
  }
  if (!in.ok()) return;
  if (!verdicts.empty())
    sink.verdicts(sink.self, verdicts.data(), static_cast<uint32_t>(verdicts.size()), sizeof(bp_verdict_t));
  if (!groups.empty()) sink.groups(sink.self, groups.data(), static_cast<uint32_t>(groups.size()), sizeof(bp_group_t));
}

// Appends the graphs of a tree in the order of write_graph.
void list(const bp_graph_t& graph, std::vector<const bp_graph_t*>& out) {
  out.push_back(&graph);
  for (uint32_t i = 0; i < graph.subgraph_count; ++i) list(*graph.subgraphs[i], out);
}

bp_status_t query(bp_device_t* handle, const bp_coverage_query_t* what, const bp_coverage_sink_t* sink,
                  bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyDevice& device = device_of(handle);
    BP_ASSIGN(const bp_coverage_query_t query, abi::read(what, "bp_coverage_query_t"));
    BP_TRY(refuse_chain(query.chain));
    if (!query.graph) return {BP_INVALID_ARGUMENT, "the graph is NULL"};
    const auto request = [&](Writer& out) {
      write_options(query.options, query.option_count, query.option_stride, out);
      out.put(query.compute_types).put<uint32_t>(query.nodes != nullptr);
      out.array(query.nodes, query.nodes ? query.node_count : 0);
    };
    Writer written;
    request(written);
    if (query.graph->parent && !query.nodes) {
      std::unique_lock lock(device.bodies_mutex);
      const auto known = device.bodies.find(query.graph->id);
      if (known != device.bodies.end() && device.bodies_request == written.bytes()) {
        const std::string answer = std::move(known->second);
        device.bodies.erase(known);
        lock.unlock();
        Reader in(answer);
        pass_on(in, *sink);
        if (in.complete()) return {};
      }
    }
    Remote remote;
    BP_ASSIGN(const std::string answer, ask(device, Operation::kCoverage, request, query.graph, query.cancel, remote));
    Reader in(answer);
    pass_on(in, *sink);
    std::vector<const bp_graph_t*> graphs;
    if (!query.graph->parent) list(*query.graph, graphs);
    std::map<uint64_t, std::string> bodies;
    for (uint64_t left = in.count(12); left > 0 && in.ok(); --left) {
      const auto graph = in.get<uint32_t>();
      const std::string_view of_body = in.text();
      in.require(graph < graphs.size());
      if (in.ok()) bodies[graphs[graph]->id] = of_body;
    }
    if (!in.complete()) return remote.process->unreadable(Operation::kCoverage);
    if (!query.graph->parent) {
      const std::lock_guard lock(device.bodies_mutex);
      device.bodies_request = written.take();
      device.bodies = std::move(bodies);
    }
    return {};
  });
}

bp_status_t review(bp_device_t* handle, const bp_compile_t* what, bp_review_t* out_review, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyDevice& device = device_of(handle);
    BP_ASSIGN(const bp_compile_t compile, abi::read(what, "bp_compile_t"));
    BP_ASSIGN(bp_review_t review, abi::read(out_review, "bp_review_t"));
    BP_TRY(refuse_chain(compile.chain));
    const auto request = [&](Writer& out) {
      write_options(compile.options, compile.option_count, compile.option_stride, out);
      out.put(compile.compute_types).put(compile.flags);
    };
    Remote remote;
    BP_ASSIGN(const std::string answer,
              ask(device, Operation::kReview, request, compile.graph, compile.cancel, remote));
    Reader in(answer);
    review.answer = in.get<uint32_t>();
    review.reason = in.get<uint32_t>();
    review.seconds = in.get<double>();
    review.bytes = in.get<uint64_t>();
    const std::string_view text = in.text();
    const uint64_t part_count = in.count(8);
    in.require(part_count <= compile.graph->node_count);
    std::vector<std::vector<uint32_t>> parts(in.ok() ? part_count : 0);
    for (auto& part : parts) part = in.array<uint32_t>();
    if (!in.complete()) return remote.process->unreadable(Operation::kReview);
    if (review.split)
      for (const auto& part : parts) review.split(review.split_self, part.data(), static_cast<uint32_t>(part.size()));
    explain(error, text);
    return abi::write(review, out_review, "bp_review_t");
  });
}

bp_status_t infer(bp_device_t* handle, const bp_infer_t* what, const bp_infer_sink_t* sink, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyDevice& device = device_of(handle);
    BP_ASSIGN(const bp_infer_t infer, abi::read(what, "bp_infer_t"));
    BP_TRY(refuse_chain(infer.chain));
    const auto request = [&](Writer& out) {
      write_options(infer.options, infer.option_count, infer.option_stride, out);
      out.put(infer.node);
    };
    Remote remote;
    BP_ASSIGN(const std::string answer, ask(device, Operation::kInfer, request, infer.graph, infer.cancel, remote));
    struct Output {
      uint32_t slot;
      bp_dtype_t dtype;
      int32_t rank;
      std::vector<bp_dim_t> dims;
    };
    Reader in(answer);
    std::vector<Output> outputs(in.count(20));
    for (Output& output : outputs) {
      output.slot = in.get<uint32_t>();
      output.dtype = in.get<bp_dtype_t>();
      output.rank = in.get<int32_t>();
      output.dims = in.array<bp_dim_t>();
      in.require(output.rank < 0 || output.dims.size() == static_cast<uint64_t>(output.rank));
    }
    if (!in.complete()) return remote.process->unreadable(Operation::kInfer);
    for (const Output& output : outputs)
      sink->output(sink->self, output.slot, output.dtype, output.rank, output.dims.data());
    return {};
  });
}

bp_status_t opsets(bp_device_t* handle, bp_opsets_t* out_opsets, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyDevice& device = device_of(handle);
    Remote remote;
    BP_ASSIGN(const std::string answer,
              device.call(Operation::kOpsets, {}, device.backend.short_patience(), nullptr, remote));
    Reader in(answer);
    bp_opsets_t known{};
    known.size = sizeof known;
    known.ir_version = in.get<uint32_t>();
    std::vector<std::pair<std::string_view, uint32_t>> list(in.count(12));
    for (auto& [domain, version] : list) {
      domain = in.text();
      version = in.get<uint32_t>();
    }
    if (!in.complete()) return remote.process->unreadable(Operation::kOpsets);
    const std::lock_guard lock(device.mutex);
    if (device.opsets.empty()) {  // filled once, because earlier results must stay valid
      for (const auto& [domain, version] : list)
        device.opsets.push_back({abi::text(device.opset_texts.emplace_back(domain)), version, 0});
    }
    known.opsets = device.opsets.data();
    known.opset_count = static_cast<uint32_t>(device.opsets.size());
    known.opset_stride = sizeof(bp_opset_t);
    return abi::write(known, out_opsets, "bp_opsets_t");
  });
}

}  // namespace

void fill_coverage_table(uint32_t offered, bp_coverage_api_t& out) {
  out.size = sizeof out;
  out.query = query;
  if (offered & kReview) out.review = review;
  if (offered & kInfer) out.infer = infer;
  if (offered & kOpsets) out.opsets = opsets;
}

}  // namespace backplane::isolate

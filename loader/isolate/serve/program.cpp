// SPDX-License-Identifier: Apache-2.0
// Handles the loader's requests about programs: compiling, output extents, cached blobs and weights.
#include <algorithm>

#include "base/abi.h"
#include "base/callback.h"
#include "base/counted.h"
#include "discover/call.h"
#include "isolate/device_limits.h"
#include "isolate/serve/server.h"

namespace backplane::isolate {
namespace {

constexpr uint64_t kMostBlob = kMostReply - 4096;

std::vector<uint32_t> kinds_of(const bp_graph_t& graph, const uint32_t* values, uint32_t count) {
  std::vector<uint32_t> kinds;
  for (uint32_t i = 0; i < count; ++i)
    kinds.push_back(bp_graph_type(&graph, bp_graph_value(&graph, values[i])->type)->kind);
  return kinds;
}

// A tensor that owns its extents, strides and elements.
struct OwnedTensor {
  std::vector<int64_t> extents, strides;
  std::vector<uint64_t> data;
  bp_tensor_t tensor{};

  void read(Reader& in) {
    tensor.size = sizeof tensor;
    tensor.dtype = in.get<bp_dtype_t>();
    tensor.layout = in.get<uint32_t>();
    extents = in.array<int64_t>();
    strides = in.array<int64_t>();
    in.require(extents.size() <= BP_MAX_RANK && (strides.empty() || strides.size() == extents.size()) &&
               (tensor.layout != BP_LAYOUT_STRIDED || strides.size() == extents.size()));
    tensor.rank = static_cast<uint32_t>(extents.size());
    tensor.extents = extents.data();
    tensor.strides = tensor.layout == BP_LAYOUT_STRIDED ? strides.data() : nullptr;
  }
  void set(std::string_view bytes) {
    data.resize(bytes.size() / 8 + 1);
    if (!bytes.empty()) std::memcpy(data.data(), bytes.data(), bytes.size());
    tensor.buffer.address = data.data();
    tensor.buffer.bytes = bytes.size();
  }
};

}  // namespace

ServedProgram::~ServedProgram() {
  if (handle) call_plugin([&] { device->tables.plugin.program->destroy(handle); });
}

Status Server::make_program(Lane& lane, Message& request, Writer& out, bool from_blob) {
  Reader in(request.bytes);
  auto made = std::make_shared<ServedProgram>();
  BP_ASSIGN(made->device, this->device(in));
  const bool cancellable = in.get<uint32_t>();
  made->options = read_options(in);
  const std::vector<bp_option_t> options = abi_options(made->options);
  bp_compile_t what{};
  what.size = sizeof what;
  what.compute_types = in.get<uint32_t>();
  what.flags = in.get<uint32_t>();
  const bool reports_progress = in.get<uint32_t>();
  made->blob = in.text();
  if (!in.ok()) return unreadable_request();
  const GraphLane::During during(made->lane, lane);
  BP_ASSIGN(made->graph, WireGraph::read(std::string(in.rest()), made->lane));
  request.bytes = {};
  what.graph = made->graph->subject();
  what.options = options.data();
  what.option_count = static_cast<uint32_t>(options.size());
  what.option_stride = sizeof(bp_option_t);
  what.cancel = cancellable ? lane.token() : nullptr;
  struct Progress {
    Lane& lane;
    uint64_t call;
  } progress{lane, lane.call()};
  if (reports_progress) {
    what.progress_self = &progress;
    what.progress = [](void* self, uint32_t done, uint32_t total) {
      const Progress& to = *static_cast<Progress*>(self);
      CallbackGuard callback;  // without memory, this report is lost
      callback.run([&] {
        Writer question;
        question.put(done).put(total);
        static_cast<void>(to.lane.ask(to.call, Operation::kProgress, question.bytes()));
      });
    };
  }
  PluginError error;
  bp_status_t code;
  const bp_plugin_t& plugin = tables_->plugin;
  if (from_blob) {
    if (!plugin.cache || !plugin.cache->deserialize) return {BP_UNSUPPORTED, "its plugin has no `deserialize`"};
    const bp_bytes_t blob{made->blob.data(), made->blob.size()};
    code = call_plugin(error, [&] {
      return plugin.cache->deserialize(made->device->handle, &what, blob, &made->handle, error.get());
    });
  } else {
    code = call_plugin(
        error, [&] { return plugin.program->compile(made->device->handle, &what, &made->handle, error.get()); });
  }
  if (code != BP_OK) {
    made->handle = nullptr;
    return Status::reported(code, error.get());
  }
  if (!made->handle) return {BP_INTERNAL, "its plugin returned BP_OK without a program"};
  bp_program_info_t& info = made->info;
  info.size = sizeof info;
  PluginError info_error;
  code = call_plugin(info_error, [&] { return plugin.program->info(made->handle, &info, info_error.get()); });
  if (code != BP_OK) return Status::reported(code, info_error.get());
  const bp_graph_t& graph = *made->graph->subject();
  if (info.input_count != graph.input_count || info.output_count != graph.output_count)
    return {BP_INTERNAL, "the program has " + counted(info.input_count, "input") + " and " +
                             counted(info.output_count, "output") + ", its island " +
                             std::to_string(graph.input_count) + " and " + std::to_string(graph.output_count)};
  if (info.inplace_count > kMaxInplacePairs)
    return {BP_INTERNAL, "the program reports " + std::to_string(info.inplace_count) + " in-place pairs; at most " +
                             std::to_string(kMaxInplacePairs) + " are accepted"};
  made->in_kinds = kinds_of(graph, graph.inputs, graph.input_count);
  made->out_kinds = kinds_of(graph, graph.outputs, graph.output_count);
  Writer rest;
  rest.put(info.input_count).put(info.output_count).put(info.shapes).put(info.flags).put(info.device_bytes);
  rest.array(info.inplace, info.inplace ? info.inplace_count : 0);
  out.put(programs_.add(std::move(made))).append(rest.bytes());
  return {};
}

Status Server::destroy_program(Reader& in) {
  programs_.take(in.get<uint64_t>());
  return {};
}

Status Server::output_extents(Lane& lane, Reader& in, Writer& out) const {
  BP_ASSIGN(const auto program, this->program(in));
  const uint64_t count = in.count(32);
  if (!in.ok() || count != program->info.input_count) return unreadable_request();
  std::vector<OwnedTensor> owned(count);
  std::vector<bp_tensor_t> tensors;
  for (OwnedTensor& each : owned) {
    each.read(in);
    const bool known = in.get<uint32_t>();
    const std::string_view bytes = in.text();
    if (known) each.set(bytes);
    tensors.push_back(each.tensor);
  }
  if (!in.complete()) return unreadable_request();
  const bp_program_api_t& api = *tables_->plugin.program;
  if (!api.output_extents) return {BP_UNSUPPORTED, "its plugin has no `output_extents`"};
  std::vector<bp_shape_t> shapes(program->info.output_count);
  for (bp_shape_t& shape : shapes) shape.rank = BP_NONE;
  bp_shape_query_t query{};
  query.size = sizeof query;
  query.input_count = static_cast<uint32_t>(count);
  query.inputs = tensors.data();
  query.input_stride = sizeof(bp_tensor_t);
  query.output_stride = sizeof(bp_shape_t);
  const GraphLane::During during(program->lane, lane);
  PluginError error;
  const bp_status_t code =
      call_plugin(error, [&] { return api.output_extents(program->handle, &query, shapes.data(), error.get()); });
  if (code != BP_OK) return Status::reported(code, error.get());
  for (const bp_shape_t& shape : shapes) {
    const uint32_t rank = shape.rank <= BP_MAX_RANK ? shape.rank : BP_NONE;
    out.put(rank).array(shape.extents, rank == BP_NONE ? 0 : rank);
  }
  return {};
}

// ---- cache ----------------------------------------------------------------------------------------------------------

Status Server::serialize(Lane& lane, Reader& in, Writer& out) const {
  BP_ASSIGN(const auto program, this->program(in));
  const bp_plugin_t& plugin = tables_->plugin;
  if (!plugin.cache || !plugin.cache->serialize) return {BP_UNSUPPORTED, "its plugin has no `serialize`"};
  const GraphLane::During during(program->lane, lane);
  struct Blob {
    std::string bytes;
    CallbackGuard callbacks;
  } blob;
  const auto sink = [](void* self, bp_text_t piece) {
    Blob& to = *static_cast<Blob*>(self);
    to.callbacks.run([&] {
      if (to.bytes.size() <= kMostBlob) to.bytes += std::string_view(piece.data, std::min(piece.size, kMostBlob + 1));
    });
  };
  PluginError error;
  const bp_status_t code =
      call_plugin(error, [&] { return plugin.cache->serialize(program->handle, sink, &blob, error.get()); });
  blob.callbacks.rethrow();
  if (code != BP_OK) return Status::reported(code, error.get());
  if (blob.bytes.size() > kMostBlob)
    return {BP_UNSUPPORTED, "the serialized program exceeds " + std::to_string(kMostBlob) +
                                " bytes, the most that an isolated backend can return"};
  out.append(blob.bytes);
  return {};
}

Status Server::validate(Reader& in, Writer& out) const {
  BP_ASSIGN(const auto device, this->device(in));
  const std::string blob(in.text());
  const bp_plugin_t& plugin = tables_->plugin;
  if (!in.complete()) return unreadable_request();
  if (!plugin.cache || !plugin.cache->validate) return {BP_UNSUPPORTED, "its plugin has no `validate`"};
  uint32_t answer = BP_CACHE_UNUSABLE;
  PluginError error;
  const bp_status_t code = call_plugin(error, [&] {
    return plugin.cache->validate(device->handle, {blob.data(), blob.size()}, &answer, error.get());
  });
  if (code != BP_OK) return Status::reported(code, error.get());
  out.put(answer).text(error.text());
  return {};
}

// ---- weights --------------------------------------------------------------------------------------------------------

Status Server::refit(Lane& lane, Reader& in) const {
  BP_ASSIGN(const auto program, this->program(in));
  const uint64_t count = in.count(36);
  std::vector<OwnedTensor> owned(count);
  std::vector<bp_refit_weight_t> weights(count);
  for (uint64_t i = 0; i < count; ++i) {
    weights[i].weight = in.get<uint32_t>();
    owned[i].read(in);
    owned[i].set(in.text());
    weights[i].tensor = &owned[i].tensor;
  }
  if (!in.complete()) return unreadable_request();
  const bp_plugin_t& plugin = tables_->plugin;
  if (!plugin.weights || !plugin.weights->refit) return {BP_UNSUPPORTED, "its plugin has no `refit`"};
  bp_refit_t what{};
  what.size = sizeof what;
  what.count = static_cast<uint32_t>(count);
  what.weights = weights.data();
  what.stride = sizeof(bp_refit_weight_t);
  const GraphLane::During during(program->lane, lane);
  PluginError error;
  const bp_status_t code =
      call_plugin(error, [&] { return plugin.weights->refit(program->handle, &what, error.get()); });
  return code == BP_OK ? Status() : Status::reported(code, error.get());
}

Status Server::read_weight(Lane& lane, Reader& in, Writer& out) const {
  BP_ASSIGN(const auto program, this->program(in));
  const auto weight = in.get<uint32_t>();
  const auto bytes = in.get<uint64_t>();
  OwnedTensor owned;
  owned.read(in);
  if (!in.complete()) return unreadable_request();
  if (bytes > kMostBlob)
    return {BP_UNSUPPORTED, "a weight of " + std::to_string(bytes) +
                                " bytes is too large to be read from an isolated backend; the limit is " +
                                std::to_string(kMostBlob)};
  const bp_plugin_t& plugin = tables_->plugin;
  if (!plugin.weights || !plugin.weights->read) return {BP_UNSUPPORTED, "its plugin has no `read`"};
  owned.set(std::string(bytes, '\0'));
  const GraphLane::During during(program->lane, lane);
  PluginError error;
  const bp_status_t code =
      call_plugin(error, [&] { return plugin.weights->read(program->handle, weight, &owned.tensor, error.get()); });
  if (code != BP_OK) return Status::reported(code, error.get());
  out.append(std::string(reinterpret_cast<const char*>(owned.data.data()), bytes));
  return {};
}

}  // namespace backplane::isolate

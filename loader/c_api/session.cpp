// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "backplane/loader.h"
#include "base/dtype.h"
#include "c_api/handles.h"
#include "profiling/create_session.h"
#include "session/report.h"

using namespace backplane;
using c_api::fenced;

namespace {

Status loader_option(std::string_view name, std::string_view value, SessionRequest& request) {
  if (name == "max_island_nodes") {
    const auto [end, failed] =
        std::from_chars(value.data(), value.data() + value.size(), request.policy.max_island_nodes);
    if (failed == std::errc() && end == value.data() + value.size()) return {};
    return {BP_INVALID_ARGUMENT,
            "option loader.max_island_nodes is '" + std::string(value) + "': it must be a number, 0 for no bound"};
  }
  if (name != "costs")
    return {BP_NOT_FOUND, "a session has no option loader." + std::string(name) +
                              ": the options are loader.costs and loader.max_island_nodes"};
  constexpr std::pair<std::string_view, Costs> kNames[] = {
      {"reported", Costs::kReported}, {"known", Costs::kKnown}, {"measure", Costs::kMeasure}};
  const auto found = std::ranges::find(kNames, value, &std::pair<std::string_view, Costs>::first);
  if (found == std::end(kNames))
    return {BP_INVALID_ARGUMENT,
            "option loader.costs is '" + std::string(value) + "': it must be reported, known or measure"};
  request.costs = found->second;
  return {};
}

// "cpu.threads" = "2" sets option "threads" of backend cpu.
Status add_option(const Environment& environment, const bp_option_t& option, SessionRequest& request) {
  const std::string_view name = abi::view(option.name);
  const size_t dot = name.find('.');
  const std::string_view id = name.substr(0, dot);
  if (id == "loader" && dot != std::string_view::npos)
    return loader_option(name.substr(dot + 1), abi::view(option.value), request);
  bool known = false;
  for (const auto& device : environment.devices()) known |= device->backend().id == id;
  if (dot == std::string_view::npos || !known)
    return {BP_NOT_FOUND, "option '" + std::string(name) +
                              "' is neither \"loader.<name>\" nor \"<backend>.<name>\" for a backend that has devices"};
  request.options[std::string(id)][std::string(name.substr(dot + 1))] = abi::string(option.value);
  return {};
}

constexpr uint32_t kComputeTypes =
    BP_COMPUTE_TF32 | BP_COMPUTE_BF16 | BP_COMPUTE_FP16 | BP_COMPUTE_FP16_ACCUMULATE | BP_COMPUTE_FP8;

Result<SessionRequest> read_request(const Environment& environment, const bp_session_desc_t* desc) {
  SessionRequest request;
  if (!desc) return request;
  BP_ASSIGN(const bp_session_desc_t known, abi::read(desc, "desc"));
  BP_TRY(abi::check_chain(known.chain));
  if (known.compute_types & ~kComputeTypes)
    return Status(BP_UNSUPPORTED,
                  "desc.compute_types is " + std::to_string(known.compute_types) + ": it has bits beyond BP_COMPUTE_*");
  BP_TRY(abi::check_flags(known.flags, BP_SESSION_REFIT | BP_SESSION_PLACE_ONLY, "desc.flags"));
  if (known.fallback > BP_FALLBACK_FORBID)
    return Status(BP_INVALID_ARGUMENT, "desc.fallback is " + std::to_string(known.fallback) + ": not a BP_FALLBACK_*");
  request.compute_types = known.compute_types;
  request.flags = known.flags;
  request.policy.fallback = known.fallback;
  request.policy.max_islands = known.max_islands;
  request.cancel = known.cancel;
  if (known.device_count && !known.devices)
    return Status(BP_INVALID_ARGUMENT,
                  "desc.devices is NULL, but desc.device_count is " + std::to_string(known.device_count));
  BP_TRY(abi::check_array(known.pins, known.pin_count, known.pin_stride, "desc.pins"));
  BP_TRY(abi::check_array(known.options, known.option_count, known.option_stride, "desc.options"));
  BP_TRY(abi::check_array(known.symbols, known.symbol_count, known.symbol_stride, "desc.symbols"));
  for (uint32_t i = 0; i < known.device_count; ++i) request.devices.push_back(abi::string(known.devices[i]));
  for (uint32_t i = 0; i < known.pin_count; ++i) {
    const bp_pin_t pin = abi::element(known.pins, i, known.pin_stride);
    request.policy.pins.push_back({abi::string(pin.pattern), abi::string(pin.device)});
  }
  for (uint32_t i = 0; i < known.option_count; ++i)
    BP_TRY(add_option(environment, abi::element(known.options, i, known.option_stride), request));
  for (uint32_t i = 0; i < known.symbol_count; ++i) {
    const bp_symbol_t symbol = abi::element(known.symbols, i, known.symbol_stride);
    if (symbol.min < 0 || symbol.max < symbol.min)
      return Status(BP_INVALID_ARGUMENT, "dimension '" + abi::string(symbol.name) + "': from " +
                                             std::to_string(symbol.min) + " to " + std::to_string(symbol.max) +
                                             " is not a range of extents");
    request.symbols.push_back({abi::string(symbol.name), symbol.min, symbol.max});
  }
  if (known.progress)
    request.progress = [self = known.self, progress = known.progress](uint32_t done, uint32_t total) {
      progress(self, done, total);
    };
  return request;
}

}  // namespace

const model::View& bp_session_t::view() const {
  std::call_once(viewed_, [&] { view_ = model::View::whole(line->latest()->shared_model(), {}); });
  return *view_;
}

std::string_view bp_session_t::keep(std::string_view text) const {
  const std::lock_guard lock(mutex_);
  return *texts_.emplace(text).first;
}

void bp_session_t::keep(std::shared_ptr<const backplane::Session> earlier) const {
  const std::lock_guard lock(mutex_);
  sessions_.insert(std::move(earlier));
}

bp_status_t bp_session_create(bp_env_t* env, bp_model_t* model, const bp_session_desc_t* desc,
                              bp_session_t** out_session, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_session, "out_session"));
    BP_TRY(c_api::usable(env, "env"));
    BP_TRY(c_api::usable(model, "model"));
    BP_ASSIGN(const SessionRequest request, read_request(*env->environment, desc));
    BP_ASSIGN(auto session, create_session(env->environment, model->model, request));
    auto handle = std::make_unique<bp_session_t>();
    handle->line = session->line();
    *out_session = handle.release();
    return {};
  });
}

void bp_session_destroy(bp_session_t* session) {
  c_api::destroy(session);
}

bp_status_t bp_session_node(const bp_session_t* session, uint32_t i, bp_placed_node_t* out_node, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(session, "session"));
    const std::shared_ptr<const Session> latest = session->line->latest();
    const Session& s = *latest;
    const Placement& placement = s.placement();
    if (i >= placement.device.size())
      return {BP_NOT_FOUND, "the graph has " + std::to_string(placement.device.size()) +
                                " nodes; there is none with index " + std::to_string(i)};
    const uint32_t chosen = placement.device[i];
    bp_placed_node_t out{};
    out.size = sizeof out;
    out.island = BP_NONE;
    if (chosen == BP_NONE) return abi::write(out, out_node, "out_node");
    out.device = s.coverage()[chosen].device->id();
    out.island = placement.island[i];
    out.seconds = placement.seconds[i * s.coverage().size() + chosen];
    if (!placement.pin[i].empty())
      out.reason = abi::text("pinned by the framework");
    else if (chosen > 0) {
      const NodeVerdict before = s.verdict(i, chosen - 1);
      out.reason = before.usable() ? abi::text("cheaper, copies and launches included")
                                   : abi::text(session->keep(before.detail));
    }
    return abi::write(out, out_node, "out_node");
  });
}

bp_status_t bp_session_report(const bp_session_t* session, bp_text_sink_t sink, void* context, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(session, "session"));
    return c_api::send(report(*session->line->latest()), sink, context);
  });
}

bp_status_t bp_session_verdict(const bp_session_t* session, uint32_t i, uint64_t device, bp_node_verdict_t* out_verdict,
                               bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(session, "session"));
    const std::shared_ptr<const Session> latest = session->line->latest();
    for (uint32_t d = 0; d < latest->coverage().size(); ++d) {
      const DeviceCoverage& known = latest->coverage()[d];
      if (known.device->id() != device) continue;
      if (i >= known.nodes.size())
        return {BP_NOT_FOUND, "the graph has " + std::to_string(known.nodes.size()) +
                                  " nodes; there is none with index " + std::to_string(i)};
      const NodeVerdict verdict = latest->verdict(i, d);
      bp_node_verdict_t out{};
      out.answer = verdict.answer;
      out.reason = verdict.reason;
      out.compute_types = verdict.compute_types;
      out.detail = abi::text(session->keep(verdict.detail));
      out.seconds = verdict.seconds;
      out.bytes = verdict.bytes;
      out.confidence = verdict.confidence;
      return abi::write(out, out_verdict, "out_verdict");
    }
    return {BP_NOT_FOUND, "the session uses no device with the id " + std::to_string(device)};
  });
}

bp_status_t bp_session_plugin_program(const bp_session_t* session, uint32_t island, const bp_program_t** out_program,
                                      bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_program, "out_program"));
    BP_TRY(c_api::usable(session, "session"));
    const std::shared_ptr<const Session> latest = session->line->latest();
    if (!latest->compiled())
      return {
          BP_BAD_STATE,
          "the session was created with BP_SESSION_PLACE_ONLY: it has no programs; create a session without that flag"};
    const auto& programs = latest->programs();
    if (island >= programs.size())
      return {BP_NOT_FOUND, "the session has " + std::to_string(programs.size()) +
                                " islands; there is none with index " + std::to_string(island)};
    const Device& device = *programs[island]->device;
    BP_TRY(c_api::has_plugin_handles(device));
    if (device.given_up()) return device.lost();
    session->keep(latest);
    *out_program = programs[island]->handle;
    return {};
  });
}

const bp_graph_t* bp_session_graph(const bp_session_t* session) {
  const bp_graph_t* graph = nullptr;
  fenced(nullptr, [&]() -> Status {
    BP_TRY(c_api::usable(session, "session"));
    graph = session->view().abi();
    return {};
  });
  return graph;
}

bp_status_t bp_session_refit(bp_session_t* session, const bp_session_refit_t* what, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(session, "session"));
    BP_ASSIGN(const bp_session_refit_t refit, abi::read(what, "what"));
    BP_TRY(abi::check_chain(refit.chain));
    BP_TRY(abi::check_flags(refit.flags, 0, "what.flags"));
    BP_TRY(abi::check_array(refit.weights, refit.count, refit.stride, "what.weights"));
    const std::shared_ptr<const Session> latest = session->line->latest();
    std::vector<std::pair<std::string, bp_tensor_t>> known;
    SpareLanes lanes;
    std::vector<c_api::CopyMemory> copies;  // of tensors that are in device memory
    for (uint32_t i = 0; i < refit.count; ++i) {
      const bp_named_tensor_t weight = abi::element(refit.weights, i, refit.stride);
      BP_ASSIGN(bp_tensor_t tensor, abi::read(weight.tensor, "what.weights.tensor"));
      BP_TRY(abi::check_buffer(tensor.buffer, "what.weights.tensor.buffer"));
      BP_ASSIGN(Device* const device, check_place(latest->environment(), tensor.buffer, "what.weights.tensor.buffer"));
      if (tensor.buffer.memory) {
        // The buffer may be much larger than the weight.
        BP_TRY(latest->check_replacement(abi::view(weight.name), tensor));
        const uint64_t bytes = tensor.dtype == BP_DTYPE_STRING ? tensor.buffer.bytes
                                                               : dense_bytes(tensor.dtype, tensor.rank, tensor.extents);
        BP_ASSIGN(c_api::CopyMemory copy, c_api::copy_to_host(*device, lanes, tensor.buffer, bytes));
        tensor.buffer = copy.buffer();
        copies.push_back(std::move(copy));
      }
      known.emplace_back(abi::string(weight.name), tensor);
    }
    return latest->refit(known);
  });
}

bp_status_t bp_session_read_weight(const bp_session_t* session, bp_text_t weight, bp_tensor_t* tensor,
                                   bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(session, "session"));
    BP_ASSIGN(bp_tensor_t known, abi::read(tensor, "tensor"));
    BP_TRY(abi::check_target(known.buffer, "tensor.buffer"));
    const std::shared_ptr<const Session> latest = session->line->latest();
    BP_TRY(check_place(latest->environment(), known.buffer, "tensor.buffer").take_status());
    return latest->read_weight(abi::view(weight), known);
  });
}

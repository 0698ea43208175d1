// SPDX-License-Identifier: Apache-2.0
// The way of a model, one call a stage: coverage → place → review → compile. Discovery (discover/environment.h) and import
// (model/import.h) come before, running (run/exec.h) after.
#include "session.h"

#include <algorithm>

#include "place/partial.h"

namespace backplane {
namespace {

// How often islands may be cut anew after a backend rejected one. Each round takes nodes away from a device, so it ends by itself;
// the bound keeps a quarrelsome backend from making it long.
constexpr int max_review_rounds = 16;

// Accelerators first, then CPUs, then the rest (reference and test devices).
int rank(uint32_t kind) {
  switch (kind) {
    case BP_DEVICE_GPU:
    case BP_DEVICE_NPU:
    case BP_DEVICE_FPGA:
      return 0;
    case BP_DEVICE_CPU:
      return 1;
    default:
      return 2;
  }
}

Result<std::vector<Device*>> choose_devices(const Environment& environment, const std::vector<std::string>& names) {
  std::vector<Device*> devices;
  for (const std::string& name : names) {
    BP_ASSIGN(Device * device, environment.find(name));
    if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
  }
  if (names.empty()) {
    for (const auto& device : environment.devices()) devices.push_back(device.get());
    std::ranges::stable_sort(devices, {}, [](const Device* device) { return rank(device->info().kind); });
  }
  if (devices.empty())
    return Status(BP_NOT_FOUND, "there is no device: no backend was found (see `backplane list`)");
  return devices;
}

}  // namespace

Result<std::shared_ptr<Session>> Session::create(std::shared_ptr<Environment> environment,
                                                 std::shared_ptr<const model::Model> model, const SessionRequest& request) {
  auto session = std::shared_ptr<Session>(new Session);
  session->environment_ = environment;
  session->model_ = model;
  session->refit_ = request.flags & BP_SESSION_REFIT;

  BP_ASSIGN(const std::vector<Device*> devices, choose_devices(*environment, request.devices));
  CoverageOptions asking{request.precision, request.cancel, request.options};
  BP_ASSIGN(session->coverage_, ask(model, devices, asking));

  const bool place_only = request.flags & BP_SESSION_PLACE_ONLY;
  for (int round = 0;; ++round) {
    BP_ASSIGN(session->placement_, (place_only ? place_partly : place)(model->graph, session->coverage_, request.policy));
    session->programs_.clear();
    for (const Island& island : session->placement_.islands)
      session->programs_.push_back(propose(model, session->coverage_[island.device], island));
    BP_ASSIGN(const bool accepted, review(session->coverage_, session->placement_, session->programs_));
    if (accepted) break;
    if (round == max_review_rounds)
      return Status(BP_UNSUPPORTED, "backends still reject islands after " + std::to_string(round) + " rounds of review");
  }
  if (place_only) return session;

  CompileOptions compiling;
  compiling.precision = request.precision;
  compiling.flags = session->refit_ ? BP_COMPILE_REFIT : 0;
  compiling.cancel = request.cancel;
  compiling.options = request.options;
  compiling.progress = request.progress;
  BP_TRY(compile(model->graph, environment->services(), session->coverage_, session->placement_, session->programs_, compiling));
  session->compiled_ = true;
  return session;
}

Result<std::vector<std::pair<const Program*, uint32_t>>> Session::holders(std::string_view name, const bp_tensor_t& tensor) const {
  if (!refit_ || !compiled_)
    return Status(BP_BAD_STATE, "the session was not made with BP_SESSION_REFIT: its weights are fixed");
  const model::Graph& graph = model_->graph;
  const auto value = std::ranges::find_if(
      graph.values, [&](const model::Value& v) { return v.weight != BP_NONE && v.name == name; });
  if (value == graph.values.end()) return Status(BP_NOT_FOUND, "the model has no weight '" + std::string(name) + "'");
  const model::Weight& weight = graph.weights[value->weight];
  if (tensor.dtype != weight.dtype || tensor.layout != BP_LAYOUT_DENSE ||
      !std::equal(weight.dims.begin(), weight.dims.end(), tensor.extents, tensor.extents + tensor.rank))
    return Status(BP_TYPE_MISMATCH, "weight '" + std::string(name) + "': the tensor's type or extents differ from the model's");
  std::vector<std::pair<const Program*, uint32_t>> found;
  for (const auto& program : programs_) {
    const bp_graph_t& island = *program->view->abi();
    for (uint32_t w = 0; w < island.weight_count; ++w) {
      if (bp_graph_weight(&island, w)->id != weight.id) continue;
      const bp_weights_api_t* api = program->plugin->weights;
      if (!api || !api->refit || !api->read)
        return Status(BP_UNSUPPORTED, "backend '" + program->device->backend().id + "' cannot replace or read back weights");
      found.emplace_back(program.get(), w);
    }
  }
  return found;
}

Status Session::refit(std::string_view weight, const bp_tensor_t& tensor) {
  BP_ASSIGN(const auto found, holders(weight, tensor));
  for (const auto& [program, index] : found) {
    PluginError error;
    BP_TRY(error.status(program->plugin->weights->refit(program->handle, index, &tensor, error.get()),
                        "device '" + program->device->name() + "'"));
  }
  return {};
}

Status Session::read_weight(std::string_view weight, bp_tensor_t& tensor) const {
  BP_ASSIGN(const auto found, holders(weight, tensor));
  if (found.empty()) return {BP_NOT_FOUND, "weight '" + std::string(weight) + "' is used by no island"};
  PluginError error;
  const Program& program = *found.front().first;
  return error.status(program.plugin->weights->read(program.handle, found.front().second, &tensor, error.get()),
                      "device '" + program.device->name() + "'");
}

}  // namespace backplane

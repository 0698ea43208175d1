// SPDX-License-Identifier: Apache-2.0
// The way of a model, one call a stage: coverage → place → review → compile. Discovery (discover/environment.h) and
// import (import/import.h) come before, running (run/exec.h) after.
#include "session/session.h"

#include <algorithm>

#include "coverage/types.h"
#include "place/partial.h"
#include "profiling/measure.h"

namespace backplane {
namespace {

// How often islands may be cut anew after a backend rejected one. Each round takes nodes away from a device, so it ends
// by itself; the bound keeps a quarrelsome backend from making it long.
constexpr int kMaxReviewRounds = 16;

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
  if (devices.empty()) return Status(BP_NOT_FOUND, "there is no device: no backend was found (see `backplane list`)");
  return devices;
}

// The model with what the framework says of its dimensions.
Result<std::shared_ptr<const model::Model>> bounded(std::shared_ptr<const model::Model> model,
                                                    const std::vector<model::Symbol>& ranges) {
  if (ranges.empty()) return model;
  const std::shared_ptr<model::Model> own = model::copy(*model);
  for (const model::Symbol& range : ranges) {
    const auto found = std::ranges::find(own->graph.symbols, range.name, &model::Symbol::name);
    if (found == own->graph.symbols.end())
      return Status(BP_NOT_FOUND, "the model has no dimension named '" + range.name + "'");
    found->min = std::max(found->min, range.min);
    found->max = std::min(found->max, range.max);
  }
  return std::shared_ptr<const model::Model>(own);
}

}  // namespace

Result<std::shared_ptr<Session>> Session::create(std::shared_ptr<Environment> environment,
                                                 std::shared_ptr<const model::Model> model,
                                                 const SessionRequest& request) {
  auto session = std::shared_ptr<Session>(new Session);
  session->environment_ = environment;
  BP_ASSIGN(session->model_, bounded(std::move(model), request.symbols));
  session->request_ = request;
  session->refit_.possible = request.flags & BP_SESSION_REFIT;

  BP_ASSIGN(const std::vector<Device*> devices, choose_devices(*environment, request.devices));
  CoverageOptions asking{request.compute_types, request.costs, request.cancel, request.options};
  for (bool wiser = true; wiser;) {
    BP_ASSIGN(session->coverage_, ask(session->model_, devices, asking));
    BP_ASSIGN(wiser, learn_types(session->model_, session->coverage_));
  }
  if (request.costs != Costs::kTold && devices.size() > 1) measure_copies(*environment, session->coverage_);
  if (request.costs == Costs::kMeasure)
    BP_TRY(measure_nodes(environment, *session->model_, request, session->coverage_));

  BP_TRY(session->place_and_compile(nullptr));
  session->request_.cancel = nullptr;  // theirs who asked
  session->request_.progress = nullptr;
  return session;
}

Status Session::place_and_compile(const Session* before) {
  const bool place_only = request_.flags & BP_SESSION_PLACE_ONLY;
  CompileOptions compiling;
  compiling.compute_types = request_.compute_types;
  compiling.refit = refit_.possible;
  compiling.cancel = request_.cancel;
  compiling.cache = environment_->cache();
  compiling.options = request_.options;
  compiling.progress = request_.progress;
  for (int round = 0;; ++round) {
    BP_ASSIGN(placement_, (place_only ? place_partly : place)(model_->graph, coverage_, request_.policy));
    programs_.clear();
    for (const Island& island : placement_.islands)
      programs_.push_back(propose(model_, coverage_[island.device], island, refit_));
    BP_ASSIGN(const bool accepted, review(coverage_, placement_, programs_, compiling));
    if (accepted) break;
    if (round == kMaxReviewRounds)
      return {BP_UNSUPPORTED, "backends still reject islands after " + std::to_string(round) + " rounds of review"};
  }
  if (place_only) return {};

  for (size_t k = 0; before && k < programs_.size(); ++k) {
    const Island& island = placement_.islands[k];
    for (size_t j = 0; j < before->programs_.size(); ++j) {
      const Island& old = before->placement_.islands[j];
      if (old.device == island.device && old.nodes == island.nodes && old.outputs == island.outputs)
        programs_[k] = before->programs_[j];
    }
  }
  BP_TRY(compile(model_->graph, environment_->services(), coverage_, placement_, programs_, compiling));
  compiled_ = true;
  return {};
}

}  // namespace backplane

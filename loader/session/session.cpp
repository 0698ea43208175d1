// SPDX-License-Identifier: Apache-2.0
// From verdicts to programs, with one call per stage: place → review → compile. Coverage (cover.h) precedes these
// stages, and running (run/exec.h) follows.
#include "session/session.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "host/cancel.h"
#include "host/log.h"
#include "place/partial.h"

namespace backplane {
namespace {

// If a backend rejects or splits an island, placement is repeated. Each round takes nodes away from a device or splits
// an island. After some rounds a split counts as a rejection, so that the nodes of a backend that always splits go to
// other devices. The limit on all rounds bounds the delay if a backend rejects only a few nodes per round.
constexpr int kMaxSplitRounds = 16, kMaxReviewRounds = 32;

// Not an error, because the pattern may be meant for another of the framework's models.
void warn_of_idle_pins(const Policy& policy, const Placement& placement, const Log& log) {
  for (const Policy::Pin& pin : policy.pins)
    if (std::ranges::find(placement.pin, pin.pattern) == placement.pin.end())
      log.warning("pin '" + pin.pattern +
                  "' places no node: no node matches it, or an earlier pin matches each that does");
}

}  // namespace

Result<std::shared_ptr<const Session>> Session::create(std::shared_ptr<Environment> environment, Covered covered,
                                                       const SessionRequest& request) {
  auto session = std::shared_ptr<Session>(new Session);
  session->environment_ = std::move(environment);
  session->model_ = std::move(covered.model);
  session->coverage_ = std::move(covered.devices);
  session->request_ = request;
  for (Policy::Pin& pin : session->request_.policy.pins)
    if (const auto device = session->environment_->find(pin.device); device.ok() && (*device)->given_up())
      pin.lost = (*device)->lost();
  session->refit_.possible = request.flags & BP_SESSION_REFIT;
  BP_TRY(session->place_and_compile(nullptr));
  warn_of_idle_pins(session->request_.policy, session->placement_, session->environment_->services().log());
  session->request_.cancel = nullptr;  // the caller may destroy it after this call
  session->request_.progress = nullptr;
  const auto line = std::make_shared<SessionLine>();
  session->line_ = line;
  line->newest_ = std::move(session);
  return line->latest();
}

NodeVerdict Session::verdict(uint32_t node, uint32_t device) const {
  NodeVerdict verdict = coverage_[device].nodes[node];
  if (!std::ranges::binary_search(placement_.no_room, NoRoom{node, device})) return verdict;
  verdict.answer = BP_ANSWER_NO;
  verdict.reason = BP_REASON_MEMORY;
  verdict.detail = "its " + std::to_string(coverage_[device].device->info().memory_bytes) +
                   " bytes of memory are used by the nodes placed there";
  return verdict;
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
  std::optional<Budget> budget;
  if (model_->budget) budget = model_->budget->fresh();
  const PlaceLimits limits{budget ? &*budget : nullptr, [this] { return cancelled(request_.cancel); }};
  for (int round = 0;; ++round) {
    BP_ASSIGN(placement_, (place_only ? place_partly : place)(model_->graph, coverage_, request_.policy, limits));
    programs_.clear();
    for (const Island& island : placement_.islands)
      programs_.push_back(propose(model_, coverage_[island.device], island, refit_));
    BP_ASSIGN(const bool accepted, review(coverage_, placement_, programs_, compiling, round < kMaxSplitRounds));
    if (accepted) break;
    if (round == kMaxReviewRounds)
      return {BP_UNSUPPORTED, "backends still reject islands after " + std::to_string(round) +
                                  " rounds of review: leave out the devices that reject them"};
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

// SPDX-License-Identifier: Apache-2.0
// Creates the session that replaces a session whose device failed.
#include <algorithm>

#include "session/session.h"

namespace backplane {
namespace {

// Excludes these nodes from the device, and groups that contain any of them. Returns false if the device supported none
// of them before.
bool exclude(DeviceCoverage& coverage, const std::vector<uint32_t>& nodes, const std::string& why) {
  bool any = false;
  for (uint32_t node : nodes) {
    NodeVerdict& verdict = coverage.nodes[node];
    if (!verdict.usable()) continue;
    verdict.answer = BP_ANSWER_NO;
    verdict.reason = BP_REASON_OTHER;
    verdict.detail = why;
    any = true;
  }
  std::erase_if(coverage.groups, [&](const NodeGroup& group) {
    return std::ranges::any_of(group.nodes, [&](uint32_t node) { return !coverage.nodes[node].usable(); });
  });
  return any;
}

// Names the nodes of an island: "node 'a' (Abs)", "node 'a' (Abs) and the 2 other nodes of its island".
std::string names(const model::Graph& graph, const Island& island) {
  const size_t others = island.nodes.size() - 1;
  const std::string first = graph.nodes[island.nodes.front()].label();
  if (others == 0) return first;
  return first + " and the " + (others == 1 ? "other node" : std::to_string(others) + " other nodes") +
         " of its island";
}

bool is_lost(const DeviceCoverage& coverage) {
  if (coverage.device->given_up()) return true;
  const auto health = coverage.device->backend().plugin->device->health;
  PluginError error;
  return health && health(coverage.handle, error.get()) != BP_OK;
}

}  // namespace

std::shared_ptr<const Session> SessionLine::latest() const {
  struct Use {
    std::shared_ptr<const SessionLine> line;
    std::shared_ptr<const Session> session;
  };
  auto use = std::make_shared<Use>(Use{shared_from_this(), nullptr});
  const std::lock_guard lock(mutex_);
  use->session = newest_;
  const Session* const session = use->session.get();
  return {std::move(use), session};
}

void Session::replace_by(std::shared_ptr<const Session> next) const {
  const std::shared_ptr<SessionLine> line = line_.lock();
  {
    const std::lock_guard lock(line->mutex_);
    line->newest_ = std::move(next);
  }
  is_replaced_.store(true, std::memory_order_release);
}

std::shared_ptr<Session> Session::copy() const {
  auto session = std::shared_ptr<Session>(new Session);
  session->environment_ = environment_;
  session->model_ = model_;
  session->request_ = request_;
  session->coverage_ = coverage_;
  session->placement_ = placement_;
  session->programs_ = programs_;
  session->faults_ = faults_;
  session->compiled_ = compiled_;
  session->line_ = line_;
  session->refit_ = refit_;
  return session;
}

Status Session::fail_over(const Fault& fault) const {
  const std::lock_guard lock(mutex_);
  if (!is_current()) return {};  // another run has already replaced this session
  if (request_.policy.fallback == BP_FALLBACK_FORBID)
    return {BP_UNSUPPORTED, "the session forbids devices other than '" + coverage_[0].device->name() + "'"};
  auto next = copy();
  std::vector<uint32_t> all(model_->graph.nodes.size());
  for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  bool excluded = false;  // callers run again after each failover, so each must exclude something
  for (DeviceCoverage& device : next->coverage_) {
    const std::string why = "it failed in a run: " + std::string(fault.status.text());
    std::string what = "is no longer used";
    if (is_lost(device) || (fault.status.code() == BP_DEVICE_LOST && device.device == fault.device)) {
      if (!exclude(device, all, why)) continue;
    } else if (device.device == fault.device && fault.island < placement_.islands.size()) {
      const Island& island = placement_.islands[fault.island];
      if (!exclude(device, island.nodes, why)) continue;
      what = "no longer runs " + names(model_->graph, island);
    } else {
      continue;
    }
    excluded = true;
    next->faults_.push_back("device '" + device.device->name() + "' " + what + ": " + why);
  }
  if (!excluded) return {BP_UNSUPPORTED, "it is not known which device failed"};
  BP_TRY(next->place_and_compile(this));
  environment_->services().log().warning(next->faults_.back());
  replace_by(std::move(next));
  return {};
}

}  // namespace backplane

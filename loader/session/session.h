// SPDX-License-Identifier: Apache-2.0
// A model placed on devices and compiled. What bp_session_t is. A session does not change: when a device fails or a
// weight is replaced, another one follows it (failover.cpp), which execs take up with their next run.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "compile/compile.h"
#include "coverage/coverage.h"
#include "discover/environment.h"
#include "ir/graph.h"
#include "place/place.h"
#include "session/cover.h"

namespace backplane {

// What went wrong in a run.
struct Fault {
  Status status;
  Device* device = nullptr;  // where; null: not known
  uint32_t island = BP_NONE;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  // Places the covered model and compiles it. What `request` refers to must live until this returns, no longer.
  static Result<std::shared_ptr<Session>> create(std::shared_ptr<Environment> environment, Covered covered,
                                                 const SessionRequest& request);

  const Environment& environment() const { return *environment_; }
  const model::Model& model() const { return *model_; }
  const std::vector<DeviceCoverage>& coverage() const { return coverage_; }
  const Placement& placement() const { return placement_; }
  const std::vector<std::shared_ptr<Program>>& programs() const { return programs_; }
  bool compiled() const { return compiled_; }

  // The weight that a value is now; null where it is none.
  std::shared_ptr<const model::Weight> weight_of(model::ValueId value) const;
  // Devices that failed, and what was done about it.
  const std::vector<std::string>& faults() const { return faults_; }

  // The session that is true now: this one, or the last that followed it.
  std::shared_ptr<const Session> latest() const;
  bool is_latest() const { return !has_next_.load(std::memory_order_acquire); }
  // The session that follows a failed run: without the device if it is lost, otherwise without what it failed at.
  // Errors: BP_UNSUPPORTED (the policy or the other devices do not allow it).
  Result<std::shared_ptr<const Session>> without(const Fault& fault) const;

  // Weights by name, where the session was made with BP_SESSION_REFIT. A backend that cannot replace them has its
  // programs compiled again. To be asked of the latest.
  // All of them or, where one cannot be, none. The tensors are in host memory.
  Status refit(const std::vector<std::pair<std::string, bp_tensor_t>>& weights) const;
  Status read_weight(std::string_view weight, bp_tensor_t& tensor) const;

 private:
  Session() = default;
  // From verdicts to programs. Those of `before` (may be null) that still fit are taken over.
  Status place_and_compile(const Session* before);
  // The programs that are chosen, with the weights that are true now.
  Status compile_again(const std::function<bool(const Program&)>& which);
  // One that differs from it in nothing but what is compiled yet.
  std::shared_ptr<Session> copy() const;
  Result<model::WeightId> find_weight(std::string_view name, const bp_tensor_t& tensor) const;
  // Every program that holds the weight, and its index there.
  std::vector<std::pair<const Program*, uint32_t>> holders(model::WeightId weight) const;

  std::shared_ptr<Environment> environment_;
  std::shared_ptr<const model::Model> model_;
  SessionRequest request_;
  std::vector<DeviceCoverage> coverage_;
  Placement placement_;
  std::vector<std::shared_ptr<Program>> programs_;
  std::vector<std::string> faults_;
  bool compiled_ = false;

  mutable std::mutex mutex_;    // of what follows
  mutable model::Refit refit_;  // weights that programs were made of or given
  mutable std::shared_ptr<const Session> next_;
  mutable std::atomic<bool> has_next_{false};
};

}  // namespace backplane

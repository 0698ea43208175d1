// SPDX-License-Identifier: Apache-2.0
// A model that was placed on devices and compiled. Implements bp_session_t. Apart from its weights a session is
// immutable. If a device fails (failover.cpp) or programs must be compiled with new weights (refit.cpp), another
// session replaces it. Execs change to it at their next run; outside of streams, an exec whose run failed repeats that
// run on it where possible.
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
#include "run/compiled_model.h"
#include "session/cover.h"

namespace backplane {

class Session;

// Holds the newest of the sessions that replace one another. The pointers that Session::create, `latest` and
// Session::current return keep the line alive. A session does not, because the line owns the newest session. A session
// that was replaced is destroyed when no exec uses it and no handle keeps it.
class SessionLine : public std::enable_shared_from_this<SessionLine> {
 public:
  std::shared_ptr<const Session> latest() const;  // thread-safe

 private:
  friend class Session;
  mutable std::mutex mutex_;
  std::shared_ptr<const Session> newest_;
};

class Session : public CompiledModel {
 public:
  // Places and compiles the model. The result is the first session of a line. Everything to which `request` refers must
  // stay valid until this returns.
  static Result<std::shared_ptr<const Session>> create(std::shared_ptr<Environment> environment, Covered covered,
                                                       const SessionRequest& request);

  const Environment& environment() const override { return *environment_; }
  const model::Model& model() const override { return *model_; }
  const std::shared_ptr<const model::Model>& shared_model() const { return model_; }
  std::shared_ptr<const SessionLine> line() const { return line_.lock(); }
  const std::vector<DeviceCoverage>& coverage() const { return coverage_; }
  const Placement& placement() const { return placement_; }
  // The verdict of device `device` (index in the coverage list) on a node: the backend's, or BP_REASON_MEMORY for a
  // node that the device supports but had no room for.
  NodeVerdict verdict(uint32_t node, uint32_t device) const;
  const std::vector<std::shared_ptr<Program>>& programs() const override { return programs_; }
  bool compiled() const override { return compiled_; }

  std::shared_ptr<const model::Weight> weight_of(model::ValueId value) const override;
  // One message for each failure after which a device, or the nodes of one of its islands, were excluded.
  const std::vector<std::string>& faults() const { return faults_; }

  std::shared_ptr<const CompiledModel> current() const override { return line()->latest(); }
  bool is_current() const override { return !is_replaced_.load(std::memory_order_acquire); }
  Status fail_over(const Fault& fault) const override;

  // Replaces weights by name: all of them or, after an error, none, unless the error says that a device's weights
  // cannot be restored. The tensors must be in host memory; their elements are copied. BP_BAD_STATE: the session is not
  // compiled, or was not created with BP_SESSION_REFIT. BP_BUSY: another session has replaced this one. If a backend
  // cannot replace weights, its programs are compiled again in a session that replaces this one.
  Status refit(const std::vector<std::pair<std::string, bp_tensor_t>>& weights) const;
  // Returns OK if `refit` would accept a tensor of this type, these extents and this size for the weight. Does not
  // check whether the tensor is in host memory.
  Status check_replacement(std::string_view weight, const bp_tensor_t& tensor) const;
  // Copies a weight's present elements into the tensor's buffer in host memory. The tensor must have the weight's type
  // and extents. The session needs BP_SESSION_REFIT for this too.
  Status read_weight(std::string_view weight, bp_tensor_t& tensor) const;

 private:
  Session() = default;
  // Performs all stages from verdicts to programs. Reuses the programs of `before` (may be null) that still fit.
  Status place_and_compile(const Session* before);
  // Compiles again, with the current weights, the programs for which `which` returns true.
  Status compile_again(const std::function<bool(const Program&)>& which);
  // Returns a copy with the same programs, some of which the caller then replaces.
  std::shared_ptr<Session> copy() const;
  // Makes `next` the newest session. The caller holds `mutex_`.
  void replace_by(std::shared_ptr<const Session> next) const;
  Result<model::WeightId> find_weight(std::string_view name, const bp_tensor_t& tensor) const;
  // The weights of one program that are to be replaced, with their current values.
  struct Replacement {
    std::vector<bp_refit_weight_t> slots;
    std::vector<const model::Weight*> present;  // the current values, in the order of `slots`
  };
  using Replacements = std::map<const Program*, Replacement>;
  Status refit_programs(const Replacements& wanted) const;
  // All programs that use the weight, each with the weight's index in its graph.
  std::vector<std::pair<const Program*, uint32_t>> holders(model::WeightId weight) const;

  std::shared_ptr<Environment> environment_;
  std::shared_ptr<const model::Model> model_;
  SessionRequest request_;
  std::vector<DeviceCoverage> coverage_;
  Placement placement_;
  std::vector<std::shared_ptr<Program>> programs_;
  std::vector<std::string> faults_;
  bool compiled_ = false;
  std::weak_ptr<SessionLine> line_;

  mutable std::mutex mutex_;    // guards the members below
  mutable model::Refit refit_;  // includes the weights that replaced those of the model
  mutable std::atomic<bool> is_replaced_{false};
};

}  // namespace backplane

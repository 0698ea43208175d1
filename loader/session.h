// SPDX-License-Identifier: Apache-2.0
// A model placed on devices and compiled. What bp_session_t is.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "coverage/coverage.h"
#include "discover/environment.h"
#include "model/graph.h"
#include "place/place.h"
#include "status.h"

namespace backplane {

// What a framework asks for: bp_session_desc_t with its strings resolved.
struct SessionRequest {
  std::vector<std::string> devices;  // preferred first; none: all
  Policy policy;
  uint32_t precision = BP_PRECISION_STRICT;
  uint32_t flags = 0;  // BP_SESSION_*
  std::map<std::string, Host::Options, std::less<>> options;
  const bp_cancel_t* cancel = nullptr;
  std::function<void(uint32_t, uint32_t)> progress;
};

class Session {
 public:
  // Everything between a model and programs; read this first.
  static Result<std::shared_ptr<Session>> create(std::shared_ptr<Environment> environment,
                                                 std::shared_ptr<const model::Model> model, const SessionRequest& request);

  const Environment& environment() const { return *environment_; }
  const model::Model& model() const { return *model_; }
  const std::vector<DeviceCoverage>& coverage() const { return coverage_; }
  const Placement& placement() const { return placement_; }
  const std::vector<std::shared_ptr<Program>>& programs() const { return programs_; }
  bool compiled() const { return compiled_; }

  // Weights by name, where the session was made with BP_SESSION_REFIT.
  Status refit(std::string_view weight, const bp_tensor_t& tensor);
  Status read_weight(std::string_view weight, bp_tensor_t& tensor) const;

 private:
  Session() = default;
  // Every program that holds the weight, and its index there.
  Result<std::vector<std::pair<const Program*, uint32_t>>> holders(std::string_view weight, const bp_tensor_t& tensor) const;

  std::shared_ptr<Environment> environment_;
  std::shared_ptr<const model::Model> model_;
  std::vector<DeviceCoverage> coverage_;
  Placement placement_;
  std::vector<std::shared_ptr<Program>> programs_;
  bool compiled_ = false;
  bool refit_ = false;
};

}  // namespace backplane

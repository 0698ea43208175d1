// SPDX-License-Identifier: Apache-2.0
// A model that has been placed on devices and compiled, as an exec sees it. Session implements this interface.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "compile/compile.h"
#include "discover/environment.h"
#include "ir/graph.h"

namespace backplane {

// Why a run failed, and where.
struct Fault {
  Status status;
  const Device* device = nullptr;  // the device that failed; null: unknown
  uint32_t island = BP_NONE;
};

class CompiledModel {
 public:
  virtual ~CompiledModel() = default;

  virtual const Environment& environment() const = 0;
  virtual const model::Model& model() const = 0;
  // Producers come before their consumers.
  virtual const std::vector<std::shared_ptr<Program>>& programs() const = 0;
  virtual bool compiled() const = 0;  // false: placed only, without programs
  // The current weight of a value; null if the value is not a weight. Thread-safe.
  virtual std::shared_ptr<const model::Weight> weight_of(model::ValueId value) const = 0;

  // The model to use from now on: this one, or its replacement after a device failed or programs were compiled again
  // with other weights. Thread-safe.
  virtual std::shared_ptr<const CompiledModel> current() const = 0;
  virtual bool is_current() const = 0;
  // Replaces this model with one that does not use the failed device, or does not run the failed island on it. Does
  // nothing if this model has been replaced already. BP_UNSUPPORTED: the session's policy forbids other devices, or the
  // device that failed is not known. Other errors: those of placing and compiling the replacement. Thread-safe.
  virtual Status fail_over(const Fault& fault) const = 0;
};

}  // namespace backplane

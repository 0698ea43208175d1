// SPDX-License-Identifier: Apache-2.0
// A model that was placed on devices and compiled, as an exec sees it. Session implements it.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "compile/compile.h"
#include "discover/environment.h"
#include "ir/graph.h"

namespace backplane {

// The failure of a run.
struct Fault {
  Status status;
  const Device* device = nullptr;  // that failed; null: unknown
  uint32_t island = BP_NONE;
};

class CompiledModel {
 public:
  virtual ~CompiledModel() = default;

  virtual const Environment& environment() const = 0;
  virtual const model::Model& model() const = 0;
  // In an order in which they can run.
  virtual const std::vector<std::shared_ptr<Program>>& programs() const = 0;
  virtual bool compiled() const = 0;  // false: there are no programs
  // The current weight of a value; null if the value is not a weight. Thread-safe.
  virtual std::shared_ptr<const model::Weight> weight_of(model::ValueId value) const = 0;

  // The model to use: this one, or the one that replaced it after a device failed or a weight was replaced.
  // Thread-safe.
  virtual std::shared_ptr<const CompiledModel> current() const = 0;
  virtual bool is_current() const = 0;
  // Replaces this model by one without the failed device, or without the island on that device. Errors:
  // BP_UNSUPPORTED (the policy or the other devices do not allow it). Thread-safe.
  virtual Status fail_over(const Fault& fault) const = 0;
};

}  // namespace backplane

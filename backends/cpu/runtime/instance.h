// SPDX-License-Identifier: Apache-2.0
// A program's state for one run at a time: its memory and its outputs' memory. The SDK keeps bindings and orders runs.
#pragma once

#include "backplane/sdk/backend.hpp"
#include "runtime/executor.h"
#include "runtime/island.h"

namespace backplane::cpu {

class Instance final : public sdk::Instance {
 public:
  explicit Instance(const Island& island);

  void bind(const bp_binding_t& binding) override;
  void extents(const sdk::Slots& slots) override;
  void plan(const bp_run_t& run) override;
  void run(const bp_run_t& run) override;

 protected:
  bool reaches(const bp_tensor_t& tensor) const override;
  bool may_ask(uint32_t output, const bp_run_t& run) const override;

 private:
  class RunOutputs;

  const cpu::Program& program() const { return executor_.program(); }
  void read_inputs();

  Executor executor_;
  // by output: its memory in the current run; a member so that runs don't allocate
  std::vector<std::optional<void*>> given_;
  bool inputs_changed_ = true;
  bool reads_inputs_ = false;  // strings and containers, which may change without being bound again
};

}  // namespace backplane::cpu

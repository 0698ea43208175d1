// SPDX-License-Identifier: Apache-2.0
// A program's state for one run at a time: its arena and the addresses of its outputs. The SDK (sdk::Instance) keeps
// the bindings and orders runs.
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
  bool may_request_memory(uint32_t output, const bp_run_t& run) const override;

 private:
  class RunOutputs;

  const cpu::Program& program() const { return executor_.program(); }
  void read_inputs();

  Executor executor_;
  // By output: the address to which it is written in the current run. A member so that runs do not allocate.
  std::vector<std::optional<void*>> given_;
  bool inputs_changed_ = true;
  // Whether there are string or container inputs, whose contents may change without a new binding.
  bool reads_inputs_ = false;
};

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// An island's program with the handle that the host uses; creates instances. The programs of subgraphs (body.h) have
// no handle.
#pragma once

#include "backplane/sdk/backend.hpp"
#include "runtime/device.h"
#include "runtime/program.h"

namespace backplane::cpu {

class Island final : public sdk::Program {
 public:
  Island(Device& device, const sdk::Compile& what) : sdk::Program(device, what), program_(device, what.raw()) {}
  const cpu::Program& program() const { return program_; }

  std::unique_ptr<sdk::Instance> instance() const override;
  bp_program_info_t info() const override;
  void output_extents(const std::vector<bp_tensor_t>& inputs, std::vector<bp_shape_t>& outputs) const override;

 private:
  cpu::Program program_;
};

}  // namespace backplane::cpu

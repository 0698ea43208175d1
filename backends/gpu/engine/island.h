// SPDX-License-Identifier: Apache-2.0
// A compiled island: a set of nodes that the device runs as a unit. Keeps prepared plans for the most recently used
// input extents.
#pragma once

#include <list>
#include <mutex>

#include "engine/device.h"
#include "engine/planner.h"

namespace backplane::gpu {

class Island final : public sdk::Program {
 public:
  Island(Device& device, const sdk::Compile& what);

  Device& gpu_device() const { return gpu_device_; }
  // Returns a plan ready to run: kernels built, constants on the device, arena packed. `read` supplies the bytes of
  // inputs that the plan depends on; if the plan depends on some and `read` is empty, throws InputsUnknown.
  // Thread-safe.
  std::shared_ptr<const Plan> plan(const std::vector<Shape>& inputs, const ReadInput& read) const {
    return plan(inputs, read, nullptr);
  }

  std::unique_ptr<sdk::Instance> instance() const override;
  bp_program_info_t info() const override;
  void output_extents(const std::vector<bp_tensor_t>& inputs, std::vector<bp_shape_t>& outputs) const override;

 private:
  struct Entry {
    std::vector<Shape> inputs;
    std::shared_ptr<const Plan> plan;
  };
  // `compile` is NULL except while the island is compiled. Then planning can be cancelled, and the fastest algorithm of
  // a library is measured where it is not known.
  std::shared_ptr<const Plan> plan(const std::vector<Shape>& inputs, const ReadInput& read,
                                   const sdk::Compile* compile) const;
  void pair_in_place(const sdk::Node& node, const InPlace& pair);
  PlanContext context() const;
  void prepare(Plan& plan, const sdk::Compile* compile) const;
  Constant resolve(Plan& plan, uint32_t storage) const;
  Buffer upload(const Storage& storage) const;
  Buffer run_once(Plan& plan, const Launch& launch) const;

  Device& gpu_device_;
  const uint32_t compute_types_;
  std::vector<bp_inplace_t> in_place_;
  bool static_inputs_ = true, static_outputs_ = true;
  mutable std::mutex mutex_;
  mutable std::list<Entry> plans_;  // most recently used first
};

// Whether the plan is valid for the inputs' current bytes; false if the plan depends on them and `read` is empty.
bool follows_from(const Plan& plan, const ReadInput& read);
// Copies the bytes of a tensor in host memory.
std::vector<std::byte> host_copy(const bp_tensor_t& tensor);

// Sets a kernel's argument to a value, or to `buffer`, the memory of the argument's storage.
void set_argument(const Kernel& kernel, uint32_t index, const Argument& argument, const Buffer& buffer);

}  // namespace backplane::gpu

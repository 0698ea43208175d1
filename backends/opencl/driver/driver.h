// SPDX-License-Identifier: Apache-2.0
// An open device: its context, and the objects that the engine creates in it.
#pragma once

#include "driver/cl.h"
#include "driver/devices.h"
#include "engine/driver.h"

namespace backplane::opencl {

class Driver final : public gpu::Driver {
 public:
  // Uses the framework's context, or creates one if `context` is NULL.
  Driver(const FoundDevice& device, const bp_native_t* context);

  void check_available() const override;
  gpu::Buffer buffer(uint64_t bytes) const override;
  gpu::Buffer part(const gpu::Buffer& whole, uint64_t offset, uint64_t bytes) const override;
  gpu::Buffer import_host(void* address, uint64_t bytes) const override;
  gpu::Queue queue() const override;

  std::string_view prelude() const override;
  std::string options() const override;
  gpu::Module compile(const std::string& text, const std::string& options) const override;
  gpu::Module load(const std::string& binary, const std::string& options) const override;

  gpu::Queue import_queue(const bp_native_t& native) const override;
  gpu::Event import_event(const bp_native_t& native) const override;
  MemoryKind memory_kind() const override { return {BP_EXTERNAL_CL_MEM, "cl_mem"}; }
  gpu::Buffer import_memory(const bp_external_t& external) const override;
  uint64_t export_memory(const gpu::DeviceMemory& memory) const override;

 private:
  FoundDevice device_;
  ClContext context_;
};

}  // namespace backplane::opencl

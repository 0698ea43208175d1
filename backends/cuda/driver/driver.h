// SPDX-License-Identifier: Apache-2.0
// An open device: its context, and the objects that the engine creates in it.
#pragma once

#include <map>
#include <mutex>

#include "driver/convolutions.h"
#include "driver/devices.h"
#include "driver/products.h"
#include "driver/queue.h"
#include "engine/driver.h"

namespace backplane::cuda {

class Driver final : public gpu::Driver {
 public:
  // Uses the framework's context, or the device's primary context if `context` is null.
  Driver(const FoundDevice& device, const bp_native_t* context);

  gpu::Buffer buffer(uint64_t bytes) const override;
  gpu::Buffer part(const gpu::Buffer& whole, uint64_t offset, uint64_t bytes) const override;
  std::shared_ptr<const void> pin(void* address, uint64_t bytes) const override;
  std::shared_ptr<int32_t> host_word() const override;
  gpu::Queue queue() const override;
  bool captures() const override { return true; }
  gpu::Capture capture(const std::function<void(gpu::CommandQueue&)>& enqueue) const override;

  std::string_view prelude() const override;
  std::string options() const override;
  gpu::Module compile(const std::string& text, const std::string& options) const override;
  gpu::Module load(const std::string& binary, const std::string& options) const override;

  const gpu::ProductLibrary* products() const override { return &products_; }
  const gpu::ConvolutionLibrary* convolutions() const override { return &convolutions_; }

  gpu::Queue import_queue(const bp_native_t& native) const override;
  gpu::Event import_event(const bp_native_t& native) const override;
  MemoryKind memory_kind() const override { return {BP_EXTERNAL_CUDA_POINTER, "CUdeviceptr"}; }
  gpu::Buffer import_memory(const bp_external_t& external) const override;
  uint64_t export_memory(const gpu::DeviceMemory& memory) const override { return raw(memory); }

 private:
  void check_import(const bp_external_t& external) const;

  FoundDevice device_;
  SharedContext context_;
  Products products_;
  Convolutions convolutions_;
  std::shared_ptr<Words> words_;
  std::shared_ptr<const Event> clock_;  // device times are measured from this event
  // Pinned host memory, by address and size in bytes. Memory that is bound several times is pinned once.
  mutable std::mutex pinned_mutex_;
  mutable std::map<std::pair<void*, uint64_t>, std::weak_ptr<const void>> pinned_;
};

}  // namespace backplane::cuda

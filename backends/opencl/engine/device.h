// SPDX-License-Identifier: Apache-2.0
// An open device: its context, its kernels, the constants that its programs share, and its memory as the ABI sees it.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "backplane/sdk.hpp"
#include "backplane/sdk/once.hpp"
#include "engine/facts.h"
#include "engine/kernel_cache.h"
#include "engine/plan.h"

namespace backplane::opencl {

class Device final : public sdk::Device, public sdk::Memory, public sdk::Sync {
 public:
  // In the framework's context, or, without one, in one of its own.
  Device(const sdk::Backend& backend, const Facts& facts, const bp_native_t* context);

  const Facts& facts() const { return facts_; }
  cl_context context() const { return context_.get(); }
  KernelCache& kernels() { return kernels_; }

  Buffer buffer(uint64_t bytes) const;                                      // at least one byte
  Buffer part(const Buffer& whole, uint64_t offset, uint64_t bytes) const;  // a sub-buffer
  Buffer import_host(void* address, uint64_t bytes) const;                  // the same bytes, no copy
  Queue queue() const;                                                      // in order, with profiling
  Queue run_queue() const;                                                  // of an instance's runs, with profiling
  // Constants by what they are; they live as long as a program holds them. NULL when none does.
  Constant constant(const std::string& key);
  Constant share(const std::string& key, Buffer buffer);

  void cover(sdk::Coverage& coverage) override;
  std::unique_ptr<sdk::Program> compile(const sdk::Compile& what) override;

  // ABI memory. Space `device_space()` holds cl_mem; where the device shares the host's memory, space 0 is that.
  uint32_t device_space() const { return facts_.unified ? 1 : 0; }
  bp_space_t space(uint32_t index) override;
  bp_buffer_t allocate(const bp_allocate_t& what) override;
  void release(const bp_buffer_t& buffer, bp_stream_t* stream) noexcept override;
  void* map(const bp_buffer_t& buffer, uint32_t access) override;
  void unmap(const bp_buffer_t& buffer, void* pointer) override;
  void copy(const bp_copy_t& what) override;
  void fill(const bp_fill_t& what) override;
  bp_buffer_t import_memory(uint32_t space, const bp_external_t& external) override;
  bp_external_t export_memory(const bp_buffer_t& buffer, uint32_t kind) override;

  // Streams, and semaphores that the framework's events can be imported to.
  std::unique_ptr<sdk::Stream> stream(const bp_stream_create_t& how) override;
  std::unique_ptr<sdk::NativeSemaphore> semaphore(const bp_semaphore_create_t& how) override;

 private:
  Event move(cl_command_queue queue, cl_bool blocking, const bp_buffer_t& from, const bp_buffer_t& to,
             uint64_t bytes) const;
  Queue make_queue(cl_command_queue_properties properties) const;
  // Rates before the first estimate, the tile before the first program: once, where no earlier process has.
  void measure();
  void tune();
  Tile chosen_tile();
  WinogradRates chosen_winograd();

  Facts facts_;
  Context context_;
  KernelCache kernels_;
  Queue transfers_;  // of map, copy and fill: thread-safe by OpenCL's rules
  sdk::Once measured_, tuned_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const Buffer>> constants_;
};

// What bp_buffer_t.memory points at in the device's own space.
struct Allocation {
  Buffer buffer;
  uint64_t offset;                        // of the allocation in the buffer, of an import
  void (*release)(void* self) = nullptr;  // of an import: its owner wants to know
  void* self = nullptr;
};
inline const Allocation& allocation(const bp_buffer_t& buffer) {
  return *reinterpret_cast<const Allocation*>(buffer.memory);
}

}  // namespace backplane::opencl

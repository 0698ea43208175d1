// SPDX-License-Identifier: Apache-2.0
// An open device: its context, kernels, constants shared by programs, and the ABI's functions for memory (memory.cpp)
// and streams (stream.cpp).
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "backplane/sdk.hpp"
#include "backplane/sdk/once.hpp"
#include "engine/abandonment.h"
#include "engine/device_caps.h"
#include "engine/driver.h"
#include "engine/kernel_cache.h"
#include "engine/library_choices.h"
#include "engine/plan.h"
#include "engine/row.h"

namespace backplane::gpu {

class Device final : public sdk::Device, public sdk::Memory, public sdk::Sync {
 public:
  // `table` must outlive the device.
  Device(const sdk::Backend& backend, const DeviceCaps& caps, std::unique_ptr<Driver> driver, const Table& table);

  const DeviceCaps& caps() const { return caps_; }
  const Driver& driver() const { return *driver_; }
  const Table& table() const { return table_; }
  KernelCache& kernels() { return kernels_; }
  Libraries libraries() {
    return {.products = products_ ? &*products_ : nullptr, .convolutions = convolutions_ ? &*convolutions_ : nullptr};
  }
  // Whether instances capture their commands. They report failures to do so to `capture_failed`, which logs the first.
  bool captures() const { return captures_; }
  void capture_failed(const sdk::Error& failure);
  // A new kernel object for the launch; the caller sets its arguments.
  Kernel kernel(const Launch& launch);

  // Constants shared by programs, which own them. `constant` returns the key's constant or NULL. `share` returns it
  // too, but first stores `buffer` if the key has none.
  Constant constant(const std::string& key);
  Constant share(const std::string& key, Buffer buffer);

  const std::shared_ptr<Abandonment>& abandonment() const { return abandonment_; }

  void cover(sdk::Coverage& coverage) override;
  void review(const sdk::Compile& what, bp_review_t& out, std::string& why) override;
  std::unique_ptr<sdk::Program> compile(const sdk::Compile& what) override;
  // Throws BP_DEVICE_LOST if the driver reports that the device is unavailable, or if its queue rejects a command for
  // any reason other than a lack of memory.
  void health() override;
  // Ends all waits for streams, semaphores and points. Runs, copies, fills and mappings that arrive later are refused.
  // Runs without a stream start no further kernels, and work in a stream that waits for a host point is never released.
  // Threads that are blocked inside the driver stay blocked.
  void abandon() noexcept override { abandonment_->set(); }

  // Memory for the ABI. Space `device_space()` is the device's own memory. If the device shares host memory, space 0 is
  // host memory.
  uint32_t device_space() const { return caps_.unified ? 1 : 0; }
  bp_space_t space(uint32_t index) override;
  bp_buffer_t allocate(const bp_allocate_t& what) override;
  void release(const bp_buffer_t& buffer, bp_stream_t* stream) noexcept override;
  void* map(const bp_buffer_t& buffer, uint32_t access) override;
  void unmap(const bp_buffer_t& buffer, void* pointer) override;
  void copy(const bp_copy_t& what) override;
  void fill(const bp_fill_t& what) override;
  bp_buffer_t import_memory(uint32_t space, const bp_external_t& external) override;
  bp_external_t export_memory(const bp_buffer_t& buffer, uint32_t kind) override;

  // Streams and semaphores, either new or wrapping a native queue or event of the framework.
  std::unique_ptr<sdk::Stream> stream(const bp_stream_create_t& how) override;
  std::unique_ptr<sdk::NativeSemaphore> semaphore(const bp_semaphore_create_t& how) override;

 private:
  Event move(CommandQueue& queue, bool blocking, const bp_buffer_t& from, const bp_buffer_t& to, uint64_t bytes) const;
  // `measure` determines the throughput before the first cost estimate. `tune` chooses the tile and whether to use
  // Winograd before the first program is compiled. Both use the results that an earlier process stored, if any.
  void measure();
  void tune();
  Tile chosen_tile();
  WinogradThroughput chosen_winograd();
  // How to use a library, by the option of this name; nullopt for the value "own": the library is not used.
  std::optional<LibraryUse> chosen_use(std::string_view option) const;
  void choose_libraries();
  bool chosen_captures() const;

  const std::shared_ptr<Abandonment> abandonment_ = std::make_shared<Abandonment>();
  DeviceCaps caps_;
  std::unique_ptr<Driver> driver_;
  const Table& table_;
  Driver::MemoryKind memory_kind_;
  KernelCache kernels_;
  std::optional<Products> products_;
  std::optional<Convolutions> convolutions_;
  const bool captures_;
  std::once_flag capture_failed_;
  Queue transfers_;  // for map, copy and fill
  sdk::Once measured_, tuned_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const DeviceMemory>> constants_;
  size_t next_sweep_ = 0;  // the number of constants at which those that no program has any more are removed
};

// For buffers in the device's own space, bp_buffer_t.memory points to an Allocation.
struct Allocation {
  Buffer buffer;
  uint64_t offset;                        // in bytes: the start of imported memory in `buffer`; otherwise 0
  void (*release)(void* self) = nullptr;  // for imported memory: called with `self` when it is released
  void* self = nullptr;
  uint64_t bytes = 0;  // from `offset` on
};
// Throws BP_INVALID_ARGUMENT if the buffer claims bytes that its memory does not have.
const Allocation& allocation(const bp_buffer_t& buffer);

}  // namespace backplane::gpu

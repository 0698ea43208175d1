// SPDX-License-Identifier: Apache-2.0
// The engine's memory, events, kernels and queues, implemented with OpenCL objects.
#pragma once

#include "driver/cl.h"
#include "engine/driver.h"

namespace backplane::opencl {

class Memory final : public gpu::DeviceMemory {
 public:
  explicit Memory(ClMemory memory, cl_mem_flags flags = CL_MEM_READ_WRITE)
      : memory_(std::move(memory)), flags_(flags) {}
  cl_mem get() const { return memory_.get(); }
  bool is_readable() const override { return (flags_ & CL_MEM_WRITE_ONLY) == 0; }
  bool is_writable() const override { return (flags_ & CL_MEM_READ_ONLY) == 0; }

 private:
  ClMemory memory_;
  cl_mem_flags flags_;
};
inline cl_mem raw(const gpu::DeviceMemory& memory) {
  return static_cast<const Memory&>(memory).get();
}

class Event final : public gpu::DeviceEvent {
 public:
  explicit Event(ClEvent event) : event_(std::move(event)) {}
  cl_event get() const { return event_.get(); }

  bool ended_well() const override;
  void check(std::string_view what) const override;
  void when_ended(std::function<void(const sdk::Error*)> end) const override;
  Times times() const override;

 private:
  ClEvent event_;
};

class Kernel final : public gpu::DeviceKernel {
 public:
  Kernel(ClKernel kernel, std::string entry) : kernel_(std::move(kernel)), entry_(std::move(entry)) {}
  cl_kernel get() const { return kernel_.get(); }
  const std::string& entry() const { return entry_; }

  void set(uint32_t index, const void* value, uint32_t bytes) override;
  void set(uint32_t index, const gpu::DeviceMemory& memory) override;

 private:
  ClKernel kernel_;
  std::string entry_;
};

class CommandQueue final : public gpu::CommandQueue {
 public:
  explicit CommandQueue(ClQueue queue) : queue_(std::move(queue)) {}
  bp_native_t native() const override;

  gpu::Event launch(gpu::DeviceKernel& kernel, const gpu::Ranges& ranges, bool timed) override;
  gpu::Event write(const gpu::Span& to, const void* from, uint64_t bytes, bool blocking,
                   std::string_view what) override;
  gpu::Event read(void* to, const gpu::Span& from, uint64_t bytes, bool blocking, std::string_view what) override;
  gpu::Event copy(const gpu::Span& to, const gpu::Span& from, uint64_t bytes, std::string_view what) override;
  void fill(const gpu::Span& to, uint32_t word, uint64_t bytes, std::string_view what) override;
  Mapped map(const gpu::Span& range, uint64_t bytes, uint32_t access, bool blocking, std::string_view what) override;
  gpu::Event unmap(const gpu::DeviceMemory& memory, void* pointer, std::string_view what) override;

  gpu::Event mark() override;
  void wait(std::span<const gpu::Event> events) override;
  std::unique_ptr<gpu::Gate> hold() override;
  void keep(gpu::Buffer) override {}  // OpenCL keeps memory until the commands that use it are complete
  void when_done(std::function<void(const sdk::Error*)> end) override;
  void flush() override;
  void finish(std::string_view what) override;

 private:
  ClEvent marker() const;

  ClQueue queue_;
};

}  // namespace backplane::opencl

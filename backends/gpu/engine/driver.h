// SPDX-License-Identifier: Apache-2.0
// The engine's interface to a device: memory, kernels, queues and events. OpenCL and CUDA implement it. All calls
// throw sdk::Error on failure, and all but those of a kernel are thread-safe. Objects are shared: each lives as
// long as a reference to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/plugin.h"
#include "backplane/sdk/fence.hpp"

namespace backplane::gpu {

// A range of the device's memory.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
};
using Buffer = std::shared_ptr<const DeviceMemory>;

// The end of a command.
class DeviceEvent {
 public:
  struct Times {
    uint64_t begin, end;  // nanoseconds of the device's clock; 0 where they were not measured
  };

  virtual ~DeviceEvent() = default;
  // Whether the command has ended without a failure. Does not wait.
  virtual bool ended_well() const = 0;
  // Throws if the command, which must have ended, failed; `what` names it.
  virtual void check(std::string_view what) const = 0;
  // Calls `end` when the command has ended, on a thread of the driver, with the failure or NULL.
  virtual void when_ended(std::function<void(const sdk::Error* failure)> end) const = 0;
  virtual Times times() const = 0;
};
using Event = std::shared_ptr<const DeviceEvent>;

// A kernel with its arguments. It does not retain memory arguments.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  virtual void set(uint32_t index, const void* value, uint32_t bytes) = 0;
  virtual void set(uint32_t index, const DeviceMemory& memory) = 0;
};
using Kernel = std::shared_ptr<DeviceKernel>;

// One source, compiled with one set of options.
class KernelModule {
 public:
  virtual ~KernelModule() = default;
  virtual Kernel kernel(const std::string& entry) const = 0;
  virtual std::string binary() const = 0;
};
using Module = std::shared_ptr<const KernelModule>;

// Work items in total and per group.
struct Ranges {
  std::array<size_t, 3> global, local;
};

// A range of memory from an offset on.
struct Span {
  const DeviceMemory* memory;
  uint64_t offset;
};

// Blocks a queue until it is opened.
class Gate {
 public:
  virtual ~Gate() = default;
  virtual void open() noexcept = 0;
};

// A queue in order: a command starts when all earlier ones have ended. Each returns the event of its end, which is
// empty if the command is known to have ended. Calls with `blocking` return when the command has ended.
class CommandQueue {
 public:
  virtual ~CommandQueue() = default;
  virtual bp_native_t native() const = 0;  // not retained

  // `timed`: the event's times will be asked for.
  virtual Event launch(DeviceKernel& kernel, const Ranges& ranges, bool timed) = 0;
  virtual Event write(const Span& to, const void* from, uint64_t bytes, bool blocking, std::string_view what) = 0;
  virtual Event read(void* to, const Span& from, uint64_t bytes, bool blocking, std::string_view what) = 0;
  virtual Event copy(const Span& to, const Span& from, uint64_t bytes, std::string_view what) = 0;
  // Sets each four bytes to `word`.
  virtual void fill(const Span& to, uint32_t word, uint64_t bytes, std::string_view what) = 0;
  // The address at which the host may access device memory until `unmap`. `access`: BP_MAP_*.
  struct Mapped {
    void* pointer;
    Event event;
  };
  virtual Mapped map(const Span& range, uint64_t bytes, uint32_t access, bool blocking, std::string_view what);
  virtual Event unmap(const DeviceMemory& memory, void* pointer, std::string_view what);

  // An event that completes when everything now in the queue has ended.
  virtual Event mark() = 0;
  // Later commands start when these events have ended.
  virtual void wait(std::span<const Event> events) = 0;
  // Later commands start when the gate is opened.
  virtual std::unique_ptr<Gate> hold() = 0;
  // Keeps `memory` until everything now in the queue has ended.
  virtual void keep(Buffer memory) = 0;
  // Calls `end` when everything now in the queue has ended: on a thread of the driver, or at once; with the failure or
  // NULL. If it throws, `end` is never called.
  virtual void when_done(std::function<void(const sdk::Error* failure)> end) = 0;
  virtual void flush() = 0;
  // Waits until the queue is empty.
  virtual void finish(std::string_view what) = 0;
  void finish_noexcept() noexcept;
};
using Queue = std::shared_ptr<CommandQueue>;

// An open device.
class Driver {
 public:
  virtual ~Driver() = default;

  virtual Buffer buffer(uint64_t bytes) const = 0;                                      // at least one byte
  virtual Buffer part(const Buffer& whole, uint64_t offset, uint64_t bytes) const = 0;  // keeps the whole
  // Uses host memory without a copy, on devices that share it.
  virtual Buffer import_host(void* address, uint64_t bytes) const;
  // Pins host memory, so that copies need no host thread, as long as the result lives. May be empty.
  virtual std::shared_ptr<const void> pin(void* address, uint64_t bytes) const;
  virtual Queue queue() const = 0;

  // Put before the text of every kernel: makes the driver's language the dialect of kernels/ (kernels/opencl.cl).
  virtual std::string_view prelude() const = 0;
  // "-DHAS_F64": options of all kernels, before their own.
  virtual std::string options() const = 0;
  // Throws with the compiler's log.
  virtual Module compile(const std::string& text, const std::string& options) const = 0;
  // Loads a stored binary; empty if the driver refuses it.
  virtual Module load(const std::string& binary, const std::string& options) const = 0;

  // Import objects of a framework. Each throws BP_UNSUPPORTED for kinds of other drivers.
  virtual Queue import_queue(const bp_native_t& native) const = 0;
  virtual Event import_event(const bp_native_t& native) const = 0;
  // The only kind of memory that can be imported and exported.
  struct MemoryKind {
    uint32_t kind;          // BP_EXTERNAL_*
    std::string_view name;  // "cl_mem"
  };
  virtual MemoryKind memory_kind() const = 0;
  virtual Buffer import_memory(const bp_external_t& external) const = 0;
  virtual uint64_t export_memory(const DeviceMemory& memory) const = 0;  // the handle
};

}  // namespace backplane::gpu

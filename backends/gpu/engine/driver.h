// SPDX-License-Identifier: Apache-2.0
// What the engine needs of a device: memory, kernels, queues and events, as OpenCL and CUDA implement them. All calls
// throw sdk::Error where they fail, and all are thread-safe but those of a kernel. Objects are shared: each lives as
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
  // Throws where the command, which has ended, failed; `what` names it.
  virtual void check(std::string_view what) const = 0;
  // Calls `end` once the command has ended, from a thread of the driver, with what it failed with or NULL.
  virtual void when_ended(std::function<void(const sdk::Error* failure)> end) const = 0;
  virtual Times times() const = 0;
};
using Event = std::shared_ptr<const DeviceEvent>;

// A kernel with arguments of its own. It does not keep the memory that they name.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  virtual void set(uint32_t index, const void* value, uint32_t bytes) = 0;
  virtual void set(uint32_t index, const DeviceMemory& memory) = 0;
};
using Kernel = std::shared_ptr<DeviceKernel>;

// What was compiled of one source with one set of options.
class KernelModule {
 public:
  virtual ~KernelModule() = default;
  virtual Kernel kernel(const std::string& entry) const = 0;
  virtual std::string binary() const = 0;
};
using Module = std::shared_ptr<const KernelModule>;

// Work items in all and in a group.
struct Ranges {
  std::array<size_t, 3> global, local;
};

// A range of memory from an offset on.
struct Span {
  const DeviceMemory* memory;
  uint64_t offset;
};

// Holds a queue back until it is opened.
class Gate {
 public:
  virtual ~Gate() = default;
  virtual void open() noexcept = 0;
};

// A queue in order: a command starts when those before it have ended. Each returns the event of its end, which is empty
// if nothing remains to be known of it. Calls with `blocking` return when the command has ended.
class CommandQueue {
 public:
  virtual ~CommandQueue() = default;
  virtual bp_native_t native() const = 0;  // not retained

  // `timed`: the event's times will be asked for.
  virtual Event launch(DeviceKernel& kernel, const Ranges& ranges, bool timed) = 0;
  virtual Event write(const Span& to, const void* from, uint64_t bytes, bool blocking, std::string_view what) = 0;
  virtual Event read(void* to, const Span& from, uint64_t bytes, bool blocking, std::string_view what) = 0;
  virtual Event copy(const Span& to, const Span& from, uint64_t bytes, std::string_view what) = 0;
  // Each four bytes become `word`.
  virtual void fill(const Span& to, uint32_t word, uint64_t bytes, std::string_view what) = 0;
  // Where the host may access device memory: from `map` on until `unmap`. `access`: BP_MAP_*.
  struct Mapped {
    void* pointer;
    Event event;
  };
  virtual Mapped map(const Span& range, uint64_t bytes, uint32_t access, bool blocking, std::string_view what);
  virtual Event unmap(const DeviceMemory& memory, void* pointer, std::string_view what);

  // Ends when all that the queue holds now has ended.
  virtual Event mark() = 0;
  // Later commands start when these have ended.
  virtual void wait(std::span<const Event> events) = 0;
  // Later commands start when the gate was opened.
  virtual std::unique_ptr<Gate> hold() = 0;
  // Keeps `memory` until all that the queue holds now has ended.
  virtual void keep(Buffer memory) = 0;
  // Calls `end` once all that the queue holds now has ended: from a thread of the driver, or at once; with what it
  // failed with or NULL. Throws where it cannot be called: then it never is.
  virtual void when_done(std::function<void(const sdk::Error* failure)> end) = 0;
  virtual void flush() = 0;
  // Waits until the queue is empty.
  virtual void finish(std::string_view what) = 0;
  void finish_noexcept() noexcept;
};
using Queue = std::shared_ptr<CommandQueue>;

// A device opened.
class Driver {
 public:
  virtual ~Driver() = default;

  virtual Buffer buffer(uint64_t bytes) const = 0;                                      // at least one byte
  virtual Buffer part(const Buffer& whole, uint64_t offset, uint64_t bytes) const = 0;  // keeps the whole
  // The same bytes, no copy: on devices that share the host's memory.
  virtual Buffer import_host(void* address, uint64_t bytes) const;
  // Lets copies from and to this host memory go on without the host, for as long as the result lives. May be empty.
  virtual std::shared_ptr<const void> pin(void* address, uint64_t bytes) const;
  virtual Queue queue() const = 0;

  // Put before the text of every kernel: makes the driver's language the dialect of kernels/ (kernels/opencl.cl).
  virtual std::string_view prelude() const = 0;
  // "-DHAS_F64": of all kernels, before their own.
  virtual std::string options() const = 0;
  // Throws with the compiler's log.
  virtual Module compile(const std::string& text, const std::string& options) const = 0;
  // Of a binary that was kept; empty where the driver does not take it.
  virtual Module load(const std::string& binary, const std::string& options) const = 0;

  // A framework's own objects. Each throws BP_UNSUPPORTED where the kind is not the driver's.
  virtual Queue import_queue(const bp_native_t& native) const = 0;
  virtual Event import_event(const bp_native_t& native) const = 0;
  // The one kind that memory is imported from and exported to.
  struct MemoryKind {
    uint32_t kind;          // BP_EXTERNAL_*
    std::string_view name;  // "cl_mem"
  };
  virtual MemoryKind memory_kind() const = 0;
  virtual Buffer import_memory(const bp_external_t& external) const = 0;
  virtual uint64_t export_memory(const DeviceMemory& memory) const = 0;  // the handle
};

}  // namespace backplane::gpu

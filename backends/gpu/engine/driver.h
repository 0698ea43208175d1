// SPDX-License-Identifier: Apache-2.0
// The engine's interface to a device: memory, kernels, queues and events. Implemented for OpenCL and CUDA. All calls
// throw sdk::Error on failure. All are thread-safe except those of DeviceKernel. Objects that are returned as shared
// pointers live as long as there is a reference to them.
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
#include "engine/convolution_library.h"
#include "engine/product_library.h"

namespace backplane::gpu {

// A range of the device's memory.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Whether kernels may read and write it. Imported memory may allow only one of the two.
  virtual bool is_readable() const { return true; }
  virtual bool is_writable() const { return true; }
  // Whether it begins at a multiple of `bytes`. Imported memory may begin anywhere.
  virtual bool is_aligned(uint32_t /*bytes*/) const { return true; }
};
using Buffer = std::shared_ptr<const DeviceMemory>;

// The completion of a command.
class DeviceEvent {
 public:
  struct Times {
    uint64_t begin, end;  // nanoseconds of the device's clock; 0 if they were not measured
  };

  virtual ~DeviceEvent() = default;
  // Whether the command has ended without a failure. Does not wait.
  virtual bool ended_well() const = 0;
  // Throws if the command failed. Call this after the command has ended; `what` names the command.
  virtual void check(std::string_view what) const = 0;
  // Calls `end`, with the failure or NULL, when the command has ended: on another thread, or before this function
  // returns. Keep the event until then.
  virtual void when_ended(std::function<void(const sdk::Error* failure)> end) const = 0;
  virtual Times times() const = 0;
};
using Event = std::shared_ptr<const DeviceEvent>;

// A kernel with its arguments. The memory that is passed as an argument must be kept alive by the caller.
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

// Commands that a queue replays as one. They contain the values of kernel arguments and the addresses of memory, which
// must be valid whenever the commands are replayed. A capture may be destroyed while it executes. Not thread-safe.
class DeviceCapture {
 public:
  virtual ~DeviceCapture() = default;
};
using Capture = std::shared_ptr<const DeviceCapture>;

// Work items in total and per group.
struct Ranges {
  std::array<size_t, 3> global, local;
};

// Device memory, beginning at an offset in bytes.
struct Span {
  const DeviceMemory* memory;
  uint64_t offset;
};

// Blocks a queue until `open` is called.
class Gate {
 public:
  virtual ~Gate() = default;
  virtual void open() noexcept = 0;
};

// An in-order queue: a command starts when all earlier ones have ended. The Event that a function returns is that of
// the command's end, or an empty pointer if no event was recorded. With `blocking`, the function returns when the
// command has ended. `what` names the command in error messages.
class CommandQueue {
 public:
  virtual ~CommandQueue() = default;
  virtual bp_native_t native() const = 0;  // not retained

  // `timed`: the event's times will be queried.
  virtual Event launch(DeviceKernel& kernel, const Ranges& ranges, bool timed) = 0;
  virtual Event write(const Span& to, const void* from, uint64_t bytes, bool blocking, std::string_view what) = 0;
  virtual Event read(void* to, const Span& from, uint64_t bytes, bool blocking, std::string_view what) = 0;
  // `from` may be memory of a peer (DeviceCaps::peers).
  virtual Event copy(const Span& to, const Span& from, uint64_t bytes, std::string_view what) = 0;
  // Fills `bytes` bytes, a multiple of four, with copies of `word`.
  virtual void fill(const Span& to, uint32_t word, uint64_t bytes, std::string_view what) = 0;
  // Enqueues the commands of a capture.
  virtual void replay(const DeviceCapture& capture, std::string_view what);
  // Whether the framework is capturing this queue: commands are then not executed but added to the framework's capture.
  // Only what `Driver::capture` lists may be enqueued. Nothing may wait for the queue, and `finish` throws.
  virtual bool is_captured() const { return false; }
  struct Mapped {
    void* pointer;  // where the host may access the memory, from the end of the command until `unmap`
    Event event;
  };
  // `access`: BP_MAP_*.
  virtual Mapped map(const Span& range, uint64_t bytes, uint32_t access, bool blocking, std::string_view what);
  virtual Event unmap(const DeviceMemory& memory, void* pointer, std::string_view what);

  // An event that completes when everything now in the queue has ended.
  virtual Event mark() = 0;
  // Later commands start only when these events have ended.
  virtual void wait(std::span<const Event> events) = 0;
  // Later commands start only when the gate is opened.
  virtual std::unique_ptr<Gate> hold() = 0;
  // Keeps `memory` alive until everything now in the queue has ended.
  virtual void keep(Buffer memory) = 0;
  // Calls `end`, with the failure or NULL, when everything now in the queue has ended: on another thread, or before
  // this function returns. If `when_done` throws, `end` is never called.
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

  // Throws if the driver reports that the device is gone. Does not wait.
  virtual void check_available() const {}

  virtual Buffer buffer(uint64_t bytes) const = 0;                                      // allocates at least one byte
  virtual Buffer part(const Buffer& whole, uint64_t offset, uint64_t bytes) const = 0;  // keeps `whole` alive
  // Makes host memory accessible to the device without a copy. The memory must outlive the result. Called only for
  // devices that share the host's memory (DeviceCaps::unified); other drivers need not implement it.
  virtual Buffer import_host(void* address, uint64_t bytes) const;
  // Pins host memory while the result lives, so that the device copies it without the host's help. The result is empty
  // if the memory was not pinned.
  virtual std::shared_ptr<const void> pin(void* address, uint64_t bytes) const;
  // A 32-bit word of host memory, initially 0. It is pinned if the driver has pinned memory, so that a queue's `read`
  // into it does not wait.
  virtual std::shared_ptr<int32_t> host_word() const { return std::make_shared<int32_t>(0); }
  virtual Queue queue() const = 0;

  // Whether `capture` is implemented.
  virtual bool captures() const { return false; }
  // Calls `enqueue` with a queue, and captures the commands that it enqueues instead of executing them: launches that
  // are not timed, fills, and copies of device memory and of pinned host memory. `enqueue` must not wait, allocate or
  // free. The queue is valid only during this call.
  virtual Capture capture(const std::function<void(CommandQueue&)>& enqueue) const;

  // Source text that precedes every kernel. It defines, in the driver's language, the names that kernels/opencl.cl
  // lists.
  virtual std::string_view prelude() const = 0;
  // Compiler options for all kernels, such as "--fmad=false". A kernel's own options follow them.
  virtual std::string options() const = 0;
  // On failure, throws an error that contains the compiler's log.
  virtual Module compile(const std::string& text, const std::string& options) const = 0;
  // Loads a stored binary. Returns an empty pointer on any failure.
  virtual Module load(const std::string& binary, const std::string& options) const = 0;

  // The driver's libraries of matrix products and of convolutions, or NULL. They live as long as the driver.
  virtual const ProductLibrary* products() const { return nullptr; }
  virtual const ConvolutionLibrary* convolutions() const { return nullptr; }

  // Import a framework's native objects. Each throws BP_UNSUPPORTED for objects of another driver.
  virtual Queue import_queue(const bp_native_t& native) const = 0;
  virtual Event import_event(const bp_native_t& native) const = 0;
  // The only kind of memory that can be imported and exported.
  struct MemoryKind {
    uint32_t kind;          // BP_EXTERNAL_*
    std::string_view name;  // "cl_mem"
  };
  virtual MemoryKind memory_kind() const = 0;
  virtual Buffer import_memory(const bp_external_t& external) const = 0;
  virtual uint64_t export_memory(const DeviceMemory& memory) const = 0;  // returns the handle
};

}  // namespace backplane::gpu

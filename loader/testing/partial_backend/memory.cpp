// SPDX-License-Identifier: Apache-2.0
#include "partial_backend/memory.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "backplane/sdk/async.hpp"

namespace backplane::partial {
namespace {

using sdk::Error;

Allocation& allocation_of(bp_memory_t* handle) {
  return *reinterpret_cast<Allocation*>(handle);
}

bp_status_t BP_CALL space(bp_device_t* handle, uint32_t index, bp_space_t* out, bp_error_t* error) {
  return fence(error, [&] {
    of(handle).called();
    const Memory kind = of(handle).script().memory;
    if (index != 0) throw Error(BP_NOT_FOUND, "a partial device has one memory space, number 0");
    bp_space_t space{};
    space.alignment = of(handle).script().align;
    if (kind == Memory::kHost) {
      space.name = {"host", 4};
      space.flags = BP_SPACE_HOST | BP_SPACE_MAPPABLE | BP_SPACE_COHERENT;
    } else {
      space.name = {"device", 6};
      space.flags = BP_SPACE_DEVICE;
      if (kind == Memory::kShared) space.flags |= BP_SPACE_COHERENT;
      if (kind == Memory::kFlushed) space.flags |= BP_SPACE_MAPPABLE;
      static constexpr uint32_t kImports[] = {BP_EXTERNAL_HOST_POINTER};
      space.imports = kImports;
      space.import_count = 1;
    }
    sdk::write(out, space, "out_space");
  });
}

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};
using Bytes = std::unique_ptr<char, Free>;

Bytes aligned(uint64_t bytes, uint64_t alignment) {
  const uint64_t whole = (std::max<uint64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  if (void* const memory = std::aligned_alloc(alignment, whole)) return Bytes(static_cast<char*>(memory));
  throw std::bad_alloc();
}

bp_status_t BP_CALL allocate(bp_device_t* handle, const bp_allocate_t* what, bp_buffer_t* out, bp_error_t* error) {
  return fence(error, [&] {
    const uint64_t bytes = what->bytes;
    Device& device = of(handle);
    device.called();
    device.check();
    Bytes data = aligned(bytes, device.script().align);
    *out = {};
    if (device.script().memory == Memory::kHost)
      out->address = data.get();
    else
      out->memory = reinterpret_cast<bp_memory_t*>(new Allocation{&device, data.get(), bytes});
    ++device.counters().allocations;
    static_cast<void>(data.release());
  });
}

void free_memory(Device& device, bp_memory_t* memory, void* address) {
  ++device.counters().releases;
  if (memory == nullptr) return std::free(address);
  Allocation* allocation = &allocation_of(memory);
  if (allocation->imported != nullptr && device.script().touches)
    static_cast<void>(*static_cast<const volatile char*>(allocation->imported));
  if (allocation->data != allocation->imported) std::free(allocation->data);
  if (allocation->release != nullptr) allocation->release(allocation->self);
  delete allocation;
}

void BP_CALL release(bp_device_t* handle, const bp_release_t* what) {
  Device& device = of(handle);
  device.called();
  bp_memory_t* const memory = what->buffer->memory;
  void* const address = what->buffer->address;
  if (what->stream == nullptr) return free_memory(device, memory, address);
  bp_run_t order{};
  order.size = sizeof order;
  static_cast<sdk::HostStream*>(sdk::stream_of(what->stream))
      ->submit(*device.backend->sdk_host, order,
               [&device, memory, address](const sdk::RunSync&) { free_memory(device, memory, address); });
}

bp_status_t BP_CALL copy(bp_device_t* handle, const bp_copy_t* what, bp_error_t* error) {
  return fence(error, [&] {
    Device& device = of(handle);
    device.called();
    device.check();
    const uint64_t bytes = what->bytes;
    const std::optional<bp_run_t> run =
        what->run != nullptr ? std::optional(sdk::read(what->run, "what.run")) : std::nullopt;
    if (bytes > what->from->bytes || bytes > what->to->bytes)
      throw Error(BP_BUFFER_TOO_SMALL, "a copy of " + std::to_string(bytes) + " bytes does not fit its buffers, of " +
                                           std::to_string(what->from->bytes) + " and " +
                                           std::to_string(what->to->bytes) + " bytes");
    char *const target = reach(device, *what->to, true), *const source = reach(device, *what->from, true);
    const auto work = [&device, target, source, bytes] {
      const Span span(device, BP_SPAN_COPY, "bytes moved");
      const uint64_t number = ++device.counters().copies_begun;
      while (number == device.script().hang_copy) take_time(5000);  // never returns
      take_time(device.script().copy_us);
      constexpr int kPatience = 10'000;  // milliseconds
      for (int i = 0; i < kPatience && device.script().copy_meets && device.backend->running == 0; ++i) take_time(1000);
      if (device.backend->running != 0) ++device.counters().copies_during_runs;
      std::memmove(target, source, bytes);
      ++device.counters().copies;
      device.counters().copied_bytes += bytes;
    };
    if (!run) return work();
    if (run->stream == nullptr)
      throw Error(BP_INVALID_ARGUMENT, "the copy has a bp_run_t without a stream; set bp_run_t.stream");
    BeginInStream begun(device.counters().in_streams);
    if (run->done != nullptr) ++device.counters().reports;
    static_cast<sdk::HostStream*>(sdk::stream_of(run->stream))
        ->submit(*device.backend->sdk_host, *run, [work, &device](const sdk::RunSync& sync) {
          const EndInStream end{device.counters().in_streams};
          sync.wait();
          work();
        });
    begun.keep();
    ++device.counters().stream_copies;
  });
}

// Maps imported memory at its own address. What is written there reaches the device only with a flush.
bp_status_t BP_CALL map(bp_device_t* handle, const bp_map_t* what, void** out, bp_error_t* error) {
  return fence(error, [&] {
    of(handle).called();
    if (of(handle).script().memory != Memory::kFlushed)
      throw Error(BP_UNSUPPORTED, "this device's memory cannot be mapped: partial.memory is not flushed");
    const bp_buffer_t* const buffer = what->buffer;
    char* const seen = reach(of(handle), *buffer);
    *out = seen;
    if (buffer->memory == nullptr) return;
    const Allocation& allocation = allocation_of(buffer->memory);
    if (allocation.imported != nullptr) *out = allocation.imported + (seen - allocation.data);
  });
}

bp_status_t BP_CALL unmap(bp_device_t* handle, const bp_map_t*, void*, bp_error_t* error) {
  return fence(error, [&] { of(handle).called(); });
}

bp_status_t BP_CALL flush(bp_device_t* handle, const bp_map_t* what, bp_error_t* error) {
  return fence(error, [&] {
    const bp_buffer_t* const buffer = what->buffer;
    Device& device = of(handle);
    device.called();
    ++device.counters().flushes;
    char* seen = reach(device, *buffer);
    const Allocation& allocation = allocation_of(buffer->memory);
    if (allocation.imported == nullptr || allocation.imported == allocation.data) return;
    char* host = allocation.imported + (seen - allocation.data);
    if (what->access & BP_MAP_WRITE) std::memcpy(seen, host, buffer->bytes);
    if (what->access & BP_MAP_READ) std::memcpy(host, seen, buffer->bytes);
  });
}

bp_status_t BP_CALL import(bp_device_t* handle, const bp_import_t* what, bp_buffer_t* out, bp_error_t* error) {
  return fence(error, [&] {
    const bp_external_t* const external = what->external;
    Device& device = of(handle);
    device.called();
    const Memory kind = device.script().memory;
    if (external->kind != BP_EXTERNAL_HOST_POINTER)
      throw Error(BP_UNSUPPORTED, "a partial device imports only host pointers, not external memory of kind " +
                                      std::to_string(external->kind));
    if (kind == Memory::kHost) throw Error(BP_UNSUPPORTED, "this device imports no memory: partial.memory is host");
    char* host = reinterpret_cast<char*>(external->handle) + external->offset;
    if (reinterpret_cast<uintptr_t>(host) % device.script().align != 0)
      throw Error(BP_UNSUPPORTED,
                  "imported memory must start on a multiple of " + std::to_string(device.script().align) + " bytes");
    Bytes own;
    if (kind == Memory::kFlushed) {
      own = aligned(external->bytes, device.script().align);
      std::memset(own.get(), 0, external->bytes);
    }
    auto* const allocation =
        new Allocation{&device, own ? own.get() : host, external->bytes, host, external->release, external->self};
    static_cast<void>(own.release());
    ++device.counters().imports;
    *out = {};
    out->memory = reinterpret_cast<bp_memory_t*>(allocation);
  });
}

}  // namespace

char* reach(const Device& device, const bp_buffer_t& buffer, bool copies) {
  if (buffer.memory == nullptr) {
    if (!copies && device.script().memory != Memory::kHost && buffer.bytes != 0)
      throw Error(BP_UNSUPPORTED, "the buffer is in host memory, which this device cannot access");
    return static_cast<char*>(buffer.address) + buffer.offset;
  }
  const Allocation& allocation = allocation_of(buffer.memory);
  const bool peer = copies && device.script().peers && allocation.device->backend == device.backend;
  if (allocation.device != &device && !peer)
    throw Error(BP_UNSUPPORTED, "the buffer belongs to partial device " + std::to_string(allocation.device->index) +
                                    ", which device " + std::to_string(device.index) + " cannot access");
  if (buffer.offset > allocation.bytes || buffer.bytes > allocation.bytes - buffer.offset)
    throw Error(BP_INVALID_ARGUMENT, "the buffer, " + std::to_string(buffer.bytes) + " bytes at offset " +
                                         std::to_string(buffer.offset) + ", reaches beyond its allocation of " +
                                         std::to_string(allocation.bytes) + " bytes");
  return allocation.data + buffer.offset;
}

const bp_memory_api_t kMemoryApi = {
    .size = sizeof(bp_memory_api_t),
    .space = space,
    .allocate = allocate,
    .release = release,
    .map = map,
    .unmap = unmap,
    .flush = flush,
    .copy = copy,
    .import = import,
};

}  // namespace backplane::partial

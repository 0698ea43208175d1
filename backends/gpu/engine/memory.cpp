// SPDX-License-Identifier: Apache-2.0
// A device's memory functions for the ABI.
#include <cstring>
#include <utility>

#include "engine/device.h"
#include "engine/stream.h"

namespace backplane::gpu {
namespace {

constexpr uint64_t kHostAlignment = 64;

char* host_address(const bp_buffer_t& buffer) {
  return static_cast<char*>(buffer.address) + buffer.offset;
}

size_t offset_of(const bp_buffer_t& buffer) {
  return allocation(buffer).offset + buffer.offset;
}

void check_reach(const bp_buffer_t& buffer, const char* name, uint64_t bytes) {
  if (buffer.memory == nullptr && buffer.address == nullptr && bytes != 0)
    throw sdk::Error(BP_INVALID_ARGUMENT, std::string("copy.") + name + " has neither memory nor an address");
  if (bytes > buffer.bytes) {
    throw sdk::Error(BP_INVALID_ARGUMENT, std::string("copy.") + name + " has " + std::to_string(buffer.bytes) +
                                              " bytes, fewer than the " + std::to_string(bytes) + " to be copied");
  }
}

bp_buffer_t device_buffer(uint32_t space, uint64_t bytes, Buffer buffer, uint64_t offset) {
  bp_buffer_t result{};
  result.space = space;
  result.memory = reinterpret_cast<bp_memory_t*>(new Allocation{std::move(buffer), offset, nullptr, nullptr, bytes});
  result.bytes = bytes;
  return result;
}

}  // namespace

bp_space_t Device::space(uint32_t index) {
  bp_space_t space{};
  if (caps_.unified && index == 0) {
    space.name = sdk::text("host");
    space.flags = BP_SPACE_HOST | BP_SPACE_MAPPABLE | BP_SPACE_COHERENT | BP_SPACE_DEVICE;
    space.alignment = kHostAlignment;
  } else if (index == device_space()) {
    space.name = sdk::text("device");
    space.flags = BP_SPACE_DEVICE | (caps_.mappable ? BP_SPACE_MAPPABLE | BP_SPACE_COHERENT : 0);
    space.alignment = caps_.alignment;
    space.imports = space.exports = &memory_kind_.kind;
    space.import_count = space.export_count = 1;
  } else {
    throw sdk::Error(BP_NOT_FOUND, caps_.name + " has no memory space " + std::to_string(index) +
                                       ": its spaces are numbered from 0 to " + std::to_string(device_space()));
  }
  space.capacity = caps_.memory_bytes;
  return space;
}

bp_buffer_t Device::allocate(const bp_allocate_t& what) {
  const auto [index, bytes] = std::pair(what.space, what.bytes);
  space(index);  // throws if there is no such space
  if (index == device_space()) return device_buffer(index, bytes, driver_->buffer(bytes), 0);
  bp_buffer_t result{};
  result.address = host().allocate(std::max<uint64_t>(bytes, 1), kHostAlignment);
  result.bytes = bytes;
  return result;
}

// Waits for the stream, which may still use the memory, if the buffer is host memory, or was imported with a function
// that is called on release.
void Device::release(const bp_buffer_t& buffer, bp_stream_t* stream) noexcept {
  auto* const memory = reinterpret_cast<Allocation*>(buffer.memory);
  if (stream != nullptr && (memory == nullptr || memory->release != nullptr))
    static_cast<Stream*>(sdk::stream_of(stream))->queue()->finish_noexcept();
  if (memory != nullptr) {
    const auto [release, self] = std::pair(memory->release, memory->self);
    if (stream != nullptr && release == nullptr)
      static_cast<Stream*>(sdk::stream_of(stream))->queue()->keep(memory->buffer);
    delete memory;
    if (release != nullptr) release(self);
  } else if (buffer.address != nullptr) {
    host().release(buffer.address, std::max<uint64_t>(buffer.bytes, 1), kHostAlignment);
  }
}

void* Device::map(const bp_buffer_t& buffer, uint32_t access) {
  abandonment_->check();
  if (buffer.memory == nullptr) return host_address(buffer);
  return transfers_
      ->map({allocation(buffer).buffer.get(), offset_of(buffer)}, buffer.bytes, access, true,
            "mapping " + std::to_string(buffer.bytes) + " bytes")
      .pointer;
}

void Device::unmap(const bp_buffer_t& buffer, void* pointer) {
  if (buffer.memory == nullptr) return;
  abandonment_->check();
  transfers_->unmap(*allocation(buffer).buffer, pointer, "unmapping");
  transfers_->finish("unmapping");
}

void Device::copy(const bp_copy_t& what) {
  const bp_buffer_t &from = *what.from, &to = *what.to;
  const uint64_t bytes = what.bytes;
  const bp_run_t* const run = what.run;
  check_reach(from, "from", bytes);
  check_reach(to, "to", bytes);
  abandonment_->check();
  if (run == nullptr) {
    move(*transfers_, true, from, to, bytes);
    return;
  }
  const auto sync = std::make_shared<const sdk::RunSync>(host(), sdk::read(run, "run"));
  Stream* const stream = stream_of(sync->run());
  if (stream->queue()->is_captured())
    throw sdk::Error(BP_UNSUPPORTED, "the framework is capturing the stream, and this backend cannot add a copy of " +
                                         std::to_string(bytes) + " bytes to the capture: bind device memory");
  std::shared_ptr<Flight> wait = stream->wait_for(sync);
  Event done;
  if (const auto failure = sdk::caught([&] { done = move(*stream->queue(), false, from, to, bytes); })) {
    stream->queue()->finish_noexcept();  // a thread that wait_for started may still be waiting
    throw sdk::Error(*failure);
  }
  stream->follow(sync, std::move(wait),
                 std::make_shared<Flight>(
                     [done] {
                       return sdk::caught([&] {
                         if (done != nullptr) done->check("copy in a stream");
                       });
                     },
                     sync->run().id));
}

// Starts a copy in the queue and returns its event, which may be empty. If `blocking`, waits until the copy has ended.
Event Device::move(CommandQueue& queue, bool blocking, const bp_buffer_t& from, const bp_buffer_t& to,
                   uint64_t bytes) const {
  if (bytes == 0) return {};
  const std::string what = "copy of " + std::to_string(bytes) + " bytes";
  const auto span = [](const bp_buffer_t& buffer) { return Span{allocation(buffer).buffer.get(), offset_of(buffer)}; };
  if (from.memory == nullptr && to.memory == nullptr) {
    if (!blocking) queue.finish("stream before a copy");
    std::memmove(host_address(to), host_address(from), bytes);
    return {};
  }
  if (from.memory == nullptr) return queue.write(span(to), host_address(from), bytes, blocking, what);
  if (to.memory == nullptr) return queue.read(host_address(to), span(from), bytes, blocking, what);
  Event event = queue.copy(span(to), span(from), bytes, what);
  if (blocking) queue.finish(what);
  return event;
}

void Device::fill(const bp_fill_t& what) {
  const bp_buffer_t& buffer = *what.buffer;
  const bp_run_t* const run = what.run;
  const char* const pattern = reinterpret_cast<const char*>(&what.pattern);
  // Copies from a filled host buffer, as neither offset nor size needs to be a multiple of the pattern's size.
  const auto filled = std::make_shared<std::vector<char>>(buffer.bytes);
  for (size_t i = 0; i < filled->size(); ++i) (*filled)[i] = pattern[i % what.pattern_bytes];
  bp_buffer_t from{};
  from.address = filled->data();
  from.bytes = filled->size();
  copy({sizeof(bp_copy_t), 0, &from, &buffer, from.bytes, run});
  if (run == nullptr || run->stream == nullptr) return;
  CommandQueue& queue = *stream_of(*run)->queue();
  // Keeps the host buffer until the copy has read it.
  if (sdk::caught([&] { queue.when_done([filled](const sdk::Error*) {}); })) queue.finish_noexcept();
}

bp_buffer_t Device::import_memory(uint32_t index, const bp_external_t& external) {
  space(index);
  if (index == device_space() && external.kind == memory_kind_.kind) {
    bp_buffer_t buffer = device_buffer(index, external.bytes, driver_->import_memory(external), external.offset);
    reinterpret_cast<Allocation*>(buffer.memory)->release = external.release;
    reinterpret_cast<Allocation*>(buffer.memory)->self = external.self;
    return buffer;
  }
  throw sdk::Error(BP_UNSUPPORTED, "memory of kind " + std::to_string(external.kind) + " cannot be imported to space " +
                                       std::to_string(index) + "; `imports` of the space lists the kinds that can");
}

bp_external_t Device::export_memory(const bp_buffer_t& buffer, uint32_t kind) {
  if (buffer.memory == nullptr)
    throw sdk::Error(BP_UNSUPPORTED, "host memory cannot be exported; allocate the buffer in space 'device'");
  if (kind != memory_kind_.kind) {
    throw sdk::Error(BP_UNSUPPORTED, "memory cannot be exported as kind " + std::to_string(kind) +
                                         "; memory of space 'device' is exported as a " +
                                         std::string(memory_kind_.name));
  }
  bp_external_t external{};
  external.kind = kind;
  external.handle = driver_->export_memory(*allocation(buffer).buffer);
  external.bytes = buffer.bytes;
  external.offset = offset_of(buffer);
  return external;
}

}  // namespace backplane::gpu

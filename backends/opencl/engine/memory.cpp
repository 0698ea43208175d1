// SPDX-License-Identifier: Apache-2.0
// The device's memory as the ABI sees it.
#include <cstring>
#include <iterator>
#include <utility>

#include "engine/device.h"
#include "engine/stream.h"

namespace backplane::opencl {
namespace {

constexpr uint64_t kHostAlignment = 64;

cl_map_flags map_flags(uint32_t access) {
  return ((access & BP_MAP_READ) != 0 ? CL_MAP_READ : 0) | ((access & BP_MAP_WRITE) != 0 ? CL_MAP_WRITE : 0);
}

char* host_address(const bp_buffer_t& buffer) {
  return static_cast<char*>(buffer.address) + buffer.offset;
}

size_t offset_of(const bp_buffer_t& buffer) {
  return allocation(buffer).offset + buffer.offset;
}

void check_reach(const bp_buffer_t& buffer, uint64_t bytes) {
  if (buffer.memory == nullptr && buffer.address == nullptr && bytes != 0)
    throw sdk::Error(BP_INVALID_ARGUMENT, "a buffer has neither memory nor address");
  if (bytes > buffer.bytes) {
    throw sdk::Error(BP_INVALID_ARGUMENT, "a copy of " + std::to_string(bytes) + " bytes is more than the " +
                                              std::to_string(buffer.bytes) + " of the buffer");
  }
}

bp_buffer_t device_buffer(uint32_t space, uint64_t bytes, Buffer buffer, uint64_t offset) {
  bp_buffer_t result{};
  result.space = space;
  result.memory = reinterpret_cast<bp_memory_t*>(new Allocation{std::move(buffer), offset});
  result.bytes = bytes;
  return result;
}

}  // namespace

bp_space_t Device::space(uint32_t index) {
  bp_space_t space{};
  if (facts_.unified && index == 0) {
    space.name = sdk::text("host");
    space.flags = BP_SPACE_HOST | BP_SPACE_MAPPABLE | BP_SPACE_COHERENT | BP_SPACE_DEVICE;
    space.alignment = kHostAlignment;
  } else if (index == device_space()) {
    space.name = sdk::text("device");
    space.flags = BP_SPACE_MAPPABLE | BP_SPACE_COHERENT | BP_SPACE_DEVICE;
    space.alignment = facts_.alignment;
    static constexpr uint32_t kKinds[] = {BP_EXTERNAL_CL_MEM};
    space.imports = space.exports = kKinds;
    space.import_count = space.export_count = std::size(kKinds);
  } else {
    throw sdk::Error(BP_NOT_FOUND, facts_.name + " has no memory space " + std::to_string(index) + "; it has " +
                                       std::to_string(device_space() + 1));
  }
  space.capacity = facts_.memory_bytes;
  return space;
}

bp_buffer_t Device::allocate(const bp_allocate_t& what) {
  const auto [index, bytes] = std::pair(what.space, what.bytes);
  space(index);  // refuses what is not there
  if (index == device_space()) return device_buffer(index, bytes, buffer(bytes), 0);
  bp_buffer_t result{};
  result.address = host().allocate(std::max<uint64_t>(bytes, 1), kHostAlignment);
  result.bytes = bytes;
  return result;
}

// OpenCL keeps a cl_mem until the commands that use it have ended; of what is not its own that has to be waited for.
void Device::release(const bp_buffer_t& buffer, bp_stream_t* stream) noexcept {
  auto* const memory = reinterpret_cast<Allocation*>(buffer.memory);
  if (stream != nullptr && (memory == nullptr || memory->release != nullptr))
    clFinish(static_cast<Stream*>(sdk::stream_of(stream))->queue());
  if (memory != nullptr) {
    const auto [release, self] = std::pair(memory->release, memory->self);
    delete memory;
    if (release != nullptr) release(self);
  } else if (buffer.address != nullptr) {
    host().release(buffer.address, std::max<uint64_t>(buffer.bytes, 1), kHostAlignment);
  }
}

void* Device::map(const bp_buffer_t& buffer, uint32_t access) {
  if (buffer.memory == nullptr) return host_address(buffer);
  cl_int status = CL_SUCCESS;
  void* pointer = clEnqueueMapBuffer(transfers_.get(), allocation(buffer).buffer.get(), CL_TRUE, map_flags(access),
                                     offset_of(buffer), buffer.bytes, 0, nullptr, nullptr, &status);
  check(status, "mapping " + std::to_string(buffer.bytes) + " bytes");
  return pointer;
}

void Device::unmap(const bp_buffer_t& buffer, void* pointer) {
  if (buffer.memory == nullptr) return;
  check(clEnqueueUnmapMemObject(transfers_.get(), allocation(buffer).buffer.get(), pointer, 0, nullptr, nullptr),
        "unmapping");
  check(clFinish(transfers_.get()), "unmapping");
}

void Device::copy(const bp_copy_t& what) {
  const bp_buffer_t &from = *what.from, &to = *what.to;
  const uint64_t bytes = what.bytes;
  const bp_run_t* const run = what.run;
  check_reach(from, bytes);
  check_reach(to, bytes);
  if (run == nullptr) {
    move(transfers_.get(), CL_TRUE, from, to, bytes);
    return;
  }
  const auto order = std::make_shared<const sdk::Order>(host(), sdk::read(run, "run"));
  Stream* const stream = stream_of(order->run());
  if (stream == nullptr) {
    order->wait();
    move(transfers_.get(), CL_TRUE, from, to, bytes);
    return order->end(nullptr);
  }
  std::shared_ptr<Flight> wait = stream->wait_for(order);
  Event done;
  if (const auto failure = sdk::caught([&] { done = move(stream->queue(), CL_FALSE, from, to, bytes); })) {
    clFinish(stream->queue());  // a thread may still be in the wait
    throw sdk::Error(*failure);
  }
  stream->follow(order, std::move(wait),
                 std::make_shared<Flight>(
                     [done] { return sdk::caught([&] { check_event(done, "copy in a stream"); }); }, order->run().id));
}

// Starts a copy in the queue and gives its event, if there is one; the call waits for its end where it is `blocking`.
Event Device::move(cl_command_queue queue, cl_bool blocking, const bp_buffer_t& from, const bp_buffer_t& to,
                   uint64_t bytes) const {
  cl_event event = nullptr;
  if (bytes == 0) return {};
  const std::string what = "copy of " + std::to_string(bytes) + " bytes";
  if (from.memory == nullptr && to.memory == nullptr) {
    if (blocking == CL_FALSE) check(clFinish(queue), "stream before a copy");
    std::memmove(host_address(to), host_address(from), bytes);
  } else if (from.memory == nullptr) {
    check(clEnqueueWriteBuffer(queue, allocation(to).buffer.get(), blocking, offset_of(to), bytes, host_address(from),
                               0, nullptr, &event),
          what);
  } else if (to.memory == nullptr) {
    check(clEnqueueReadBuffer(queue, allocation(from).buffer.get(), blocking, offset_of(from), bytes, host_address(to),
                              0, nullptr, &event),
          what);
  } else {
    check(clEnqueueCopyBuffer(queue, allocation(from).buffer.get(), allocation(to).buffer.get(), offset_of(from),
                              offset_of(to), bytes, 0, nullptr, &event),
          what);
    if (blocking != CL_FALSE) check(clWaitForEvents(1, &event), what);
  }
  return Event(event);
}

void Device::fill(const bp_fill_t& what) {
  const bp_buffer_t& buffer = *what.buffer;
  const bp_run_t* const run = what.run;
  const char* const pattern = reinterpret_cast<const char*>(&what.pattern);
  // By way of a filled copy: neither offset nor size need be a multiple of the pattern.
  const auto filled = std::make_shared<std::vector<char>>(buffer.bytes);
  for (size_t i = 0; i < filled->size(); ++i) (*filled)[i] = pattern[i % what.pattern_bytes];
  bp_buffer_t from{};
  from.address = filled->data();
  from.bytes = filled->size();
  copy({sizeof(bp_copy_t), 0, &from, &buffer, from.bytes, run});
  if (run == nullptr || run->stream == nullptr) return;
  const cl_command_queue queue = stream_of(*run)->queue();
  if (sdk::caught([&] { when_done(queue, [filled](cl_int) {}); })) clFinish(queue);  // it is read until then
}

bp_buffer_t Device::import_memory(uint32_t index, const bp_external_t& external) {
  space(index);
  if (index == device_space() && external.kind == BP_EXTERNAL_CL_MEM) {
    const auto memory = reinterpret_cast<cl_mem>(external.handle);
    check(clRetainMemObject(memory), "import of a cl_mem");
    bp_buffer_t buffer = device_buffer(index, external.bytes, Buffer(memory), external.offset);
    reinterpret_cast<Allocation*>(buffer.memory)->release = external.release;
    reinterpret_cast<Allocation*>(buffer.memory)->self = external.self;
    return buffer;
  }
  throw sdk::Error(BP_UNSUPPORTED, "memory of kind " + std::to_string(external.kind) + " cannot be imported to space " +
                                       std::to_string(index) + "; its `imports` names what can");
}

bp_external_t Device::export_memory(const bp_buffer_t& buffer, uint32_t kind) {
  if (kind != BP_EXTERNAL_CL_MEM || buffer.memory == nullptr) {
    throw sdk::Error(BP_UNSUPPORTED, "memory cannot be exported as kind " + std::to_string(kind) +
                                         "; memory of space 'device' is exported as a cl_mem");
  }
  bp_external_t external{};
  external.kind = kind;
  external.handle = reinterpret_cast<uint64_t>(allocation(buffer).buffer.get());
  external.bytes = buffer.bytes;
  external.offset = offset_of(buffer);
  return external;
}

}  // namespace backplane::opencl

// SPDX-License-Identifier: Apache-2.0
#include "isolate/serve/instance.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/abi.h"
#include "base/dtype.h"
#include "discover/call.h"
#include "isolate/container_wire.h"
#include "isolate/process.h"

namespace backplane::isolate {
namespace {

constexpr uint64_t kScratchAlignment = 4096;

uint64_t size_of(const Descriptor& file) {
  struct stat state {};
  return ::fstat(file.get(), &state) == 0 ? static_cast<uint64_t>(state.st_size) : 0;
}

bool is_large_enough(const Descriptor& file, uint64_t offset, uint64_t bytes) {
  const uint64_t size = size_of(file);
  return offset <= size && bytes <= size - offset;
}

bp_buffer_t host_buffer(char* address, uint64_t bytes) {
  bp_buffer_t buffer{};
  buffer.address = address;
  buffer.bytes = bytes;
  return buffer;
}

// The number of bytes that a tensor's elements occupy; `capacity` for strings and strided tensors.
uint64_t used_bytes(bp_dtype_t dtype, uint32_t layout, const std::vector<int64_t>& extents, uint64_t capacity) {
  if (dtype == BP_DTYPE_STRING || layout != BP_LAYOUT_DENSE) return capacity;
  return std::min(capacity, dense_bytes(dtype, static_cast<uint32_t>(extents.size()), extents.data()));
}

}  // namespace

Result<std::shared_ptr<ServedInstance>> ServedInstance::make(std::shared_ptr<ServedProgram> program) {
  std::shared_ptr<ServedInstance> made(new ServedInstance(std::move(program)));
  bp_instance_create_t how{};
  how.size = sizeof how;
  PluginError error;
  const bp_instance_api_t& api = *made->plugin().instance;
  const bp_status_t code =
      call_plugin(error, [&] { return api.create(made->program_->handle, &how, &made->handle_, error.get()); });
  if (code != BP_OK) {
    made->handle_ = nullptr;
    return Status::reported(code, error.get());
  }
  if (!made->handle_) return Status(BP_INTERNAL, "its plugin returned BP_OK without an instance");
  made->inputs_ = std::vector<Slot>(made->program_->info.input_count);
  made->outputs_ = std::vector<Slot>(made->program_->info.output_count);
  BP_TRY(made->bind_containers());
  BP_TRY(made->bind_scratch());
  return made;
}

ServedInstance::~ServedInstance() {
  if (handle_) call_plugin([&] { plugin().instance->destroy(handle_); });
}

ServedInstance::Slot* ServedInstance::slot(uint32_t number) {
  std::vector<Slot>& side = number < BP_SLOT_OUTPUT ? inputs_ : outputs_;
  const uint32_t index = number < BP_SLOT_OUTPUT ? number : number - BP_SLOT_OUTPUT;
  return index < side.size() ? &side[index] : nullptr;
}

// Binds each sequence, optional and map once, to a container of this process. Every run sends the contents.
Status ServedInstance::bind_containers() {
  for (uint32_t side = 0; side < 2; ++side) {
    std::vector<Slot>& slots = side == 0 ? inputs_ : outputs_;
    const std::vector<uint32_t>& kinds = side == 0 ? program_->in_kinds : program_->out_kinds;
    for (uint32_t i = 0; i < slots.size(); ++i) {
      auto container = make_container(kinds[i]);
      if (!container.ok()) continue;  // this slot is a tensor
      slots[i].container = container.take();
      bp_binding_t binding{};
      binding.size = sizeof binding;
      binding.slot = i + (side == 0 ? 0 : BP_SLOT_OUTPUT);
      binding.container = slots[i].container.get();
      PluginError error;
      const bp_status_t code =
          call_plugin(error, [&] { return plugin().instance->bind(handle_, &binding, error.get()); });
      if (code != BP_OK) return Status::reported(code, error.get());
    }
  }
  return {};
}

Status ServedInstance::bind_scratch() {
  const uint64_t bytes = program_->info.scratch_bytes;
  if (bytes == 0) return {};
  const auto extent = static_cast<int64_t>(bytes);
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = BP_DTYPE_UINT8;
  tensor.rank = 1;
  tensor.extents = &extent;
  if (memory().is_host()) {
    scratch_.resize(bytes + kScratchAlignment);
    const auto begin = reinterpret_cast<uintptr_t>(scratch_.data());
    const uintptr_t aligned = (begin + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
    tensor.buffer = host_buffer(reinterpret_cast<char*>(aligned), bytes);
  } else {
    BP_ASSIGN(const bp_buffer_t buffer, memory().allocate(bytes));
    device_scratch_ = DeviceBuffer(memory(), buffer);
    tensor.buffer = buffer;
    tensor.buffer.bytes = bytes;
  }
  bp_binding_t binding{};
  binding.size = sizeof binding;
  binding.slot = BP_SLOT_SCRATCH;
  binding.tensor = &tensor;
  PluginError error;
  const bp_status_t code = call_plugin(error, [&] { return plugin().instance->bind(handle_, &binding, error.get()); });
  return code == BP_OK ? Status() : Status::reported(code, error.get());
}

Result<std::shared_ptr<const Mapping>> ServedInstance::map_block(uint64_t block, const Descriptor& file) const {
  for (const std::vector<Slot>* side : {&inputs_, &outputs_})
    for (const Slot& slot : *side)
      if (slot.mapping && slot.block == block) return slot.mapping;
  auto mapping = std::make_shared<const Mapping>(Mapping::of(file.get(), 0, size_of(file), PROT_READ | PROT_WRITE));
  if (!*mapping) return Status(BP_RESOURCE_EXHAUSTED, "shared memory of the loader cannot be mapped");
  return mapping;
}

Result<std::shared_ptr<const DeviceBuffer>> ServedInstance::device_buffer(uint32_t number, const Slot& next) const {
  for (const Slot& slot : number < BP_SLOT_OUTPUT ? outputs_ : inputs_)
    if (next.block && slot.device && slot.block == next.block && slot.offset == next.offset &&
        slot.capacity >= next.capacity)
      return slot.device;
  BP_ASSIGN(const bp_buffer_t buffer, memory().allocate(next.capacity));
  return std::make_shared<const DeviceBuffer>(memory(), buffer);
}

Status ServedInstance::bind(Reader& in, const std::vector<Descriptor>& files) {
  const auto number = in.get<uint32_t>();
  Slot next;
  next.dtype = in.get<bp_dtype_t>();
  next.layout = in.get<uint32_t>();
  next.flags = in.get<uint32_t>();
  next.extents = in.array<int64_t>();
  next.strides = in.array<int64_t>();
  const auto block = next.block = in.get<uint64_t>(), offset = next.offset = in.get<uint64_t>();
  next.capacity = in.get<uint64_t>();
  const bool keeps = in.get<uint32_t>();
  const uint64_t whole = keeps ? in.get<uint64_t>() : 0;
  Slot* slot = this->slot(number);
  if (!in.complete() || !slot || slot->container || next.extents.size() > BP_MAX_RANK ||
      (!next.strides.empty() && next.strides.size() != next.extents.size()) ||
      (next.layout == BP_LAYOUT_STRIDED && next.strides.size() != next.extents.size()) || files.size() > 1)
    return unreadable_request();
  if (keeps) {
    if (!files.empty()) {
      if (!is_large_enough(files[0], 0, whole)) return unreadable_request();
      auto mapping = std::make_shared<const Mapping>(Mapping::of(files[0].get(), 0, whole, PROT_READ | PROT_WRITE));
      if (!*mapping) return {BP_RESOURCE_EXHAUSTED, "shared memory of the loader cannot be mapped"};
      blocks_[block] = std::move(mapping);
      block_bytes_[block] = whole;
    }
    const auto known = blocks_.find(block);
    if (known == blocks_.end() || offset > block_bytes_[block] || next.capacity > block_bytes_[block] - offset)
      return unreadable_request();
    next.mapping = known->second;
    next.address = next.mapping->data() + offset;
  } else if (!files.empty() && next.capacity > 0) {
    if (!is_large_enough(files[0], offset, next.capacity)) return unreadable_request();
    BP_ASSIGN(next.mapping, map_block(block, files[0]));
    next.address = next.mapping->data() + offset;
  }
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = next.dtype;
  tensor.rank = static_cast<uint32_t>(next.extents.size());
  tensor.layout = next.layout;
  tensor.extents = next.extents.data();
  tensor.strides = next.layout == BP_LAYOUT_STRIDED ? next.strides.data() : nullptr;
  tensor.buffer = host_buffer(next.address, next.capacity);
  if (!memory().is_host()) {
    BP_ASSIGN(next.device, device_buffer(number, next));
    tensor.buffer = next.device->get();
    tensor.buffer.bytes = next.capacity;
  }
  tensor.buffer.flags = next.flags;
  bp_binding_t binding{};
  binding.size = sizeof binding;
  binding.slot = number;
  binding.tensor = &tensor;
  PluginError error;
  const bp_status_t code = call_plugin(error, [&] { return plugin().instance->bind(handle_, &binding, error.get()); });
  if (code != BP_OK) return Status::reported(code, error.get());
  next.bound = true;
  *slot = std::move(next);
  return {};
}

Status ServedInstance::extents(Reader& in) {
  const uint64_t count = in.count(12);
  std::vector<std::vector<int64_t>> extents(count);
  std::vector<bp_slot_extents_t> slots(count);
  for (uint64_t i = 0; i < count; ++i) {
    slots[i].slot = in.get<uint32_t>();
    extents[i] = in.array<int64_t>();
    in.require(slot(slots[i].slot) && extents[i].size() <= BP_MAX_RANK);
    slots[i].rank = static_cast<uint32_t>(extents[i].size());
    slots[i].extents = extents[i].data();
  }
  if (!in.complete()) return unreadable_request();
  const bp_instance_api_t& api = *plugin().instance;
  if (!api.extents) return {BP_UNSUPPORTED, "its plugin has no `extents`"};
  PluginError error;
  const bp_status_t code = call_plugin(error, [&] {
    return api.extents(handle_, slots.data(), static_cast<uint32_t>(count), sizeof(bp_slot_extents_t), error.get());
  });
  if (code != BP_OK) return Status::reported(code, error.get());
  for (uint64_t i = 0; i < count; ++i) slot(slots[i].slot)->extents = std::move(extents[i]);
  return {};
}

// ---- runs -----------------------------------------------------------------------------------------------------------

void ServedInstance::on_done(void* self, bp_status_t code, const bp_error_t* error) {
  Running& running = *static_cast<Running*>(self);
  const std::lock_guard lock(running.mutex);
  if (running.done) return;
  if (code != BP_OK) running.status = Status::reported(code, error);
  running.done = true;
  running.changed.notify_all();
}

Status ServedInstance::run(Lane& lane, const RunOrder& order) {
  const GraphLane::During during(program_->lane, lane);
  std::optional<ActiveLanes::During> traced;
  if (order.tracing) traced.emplace(traced_runs(), lane);
  if (!memory().is_host())
    for (const Slot& slot : inputs_)
      if (slot.device)
        BP_TRY(memory().copy(host_buffer(slot.address, slot.capacity), slot.device->get(),
                             used_bytes(slot.dtype, slot.layout, slot.extents, slot.capacity)));
  {
    const std::lock_guard lock(running_.mutex);
    running_.instance = this;
    running_.lane = &lane;
    running_.call = lane.call();
    running_.done = program_->device->synchronous;
    running_.status = {};
    running_.found.clear();
  }
  bp_run_t run{};
  run.size = sizeof run;
  run.deadline = order.deadline;
  run.cancel = order.cancellable ? lane.token() : nullptr;
  run.id = order.id;
  run.priority = order.priority;
  run.trace_id = order.trace_id;
  run.self = &running_;
  run.output = [](void* self, uint32_t number, uint32_t rank, const int64_t* extents, uint64_t bytes,
                  bp_tensor_t* out_tensor) {
    try {
      return static_cast<Running*>(self)->instance->output(number, rank, extents, bytes, out_tensor);
    } catch (...) {
      return BP_RESOURCE_EXHAUSTED;
    }
  };
  // On a synchronous device the run has ended when the call returns, so it needs no `done`.
  if (!program_->device->synchronous) run.done = on_done;
  PluginError error;
  const bp_status_t code = call_plugin(error, [&] { return plugin().instance->run(handle_, &run, error.get()); });
  if (code != BP_OK) return Status::reported(code, error.get());
  {
    std::unique_lock lock(running_.mutex);
    running_.changed.wait(lock, [&] { return running_.done; });
  }
  BP_TRY(std::move(running_.status));
  if (memory().is_host()) return {};
  for (const Slot& slot : outputs_)
    if (slot.device)
      BP_TRY(memory().copy(slot.device->get(), host_buffer(slot.address, slot.capacity),
                           used_bytes(slot.dtype, slot.layout, slot.extents, slot.capacity)));
  for (const auto& [number, found] : running_.found)
    if (found.device)
      BP_TRY(memory().copy(found.device.get(), host_buffer(found.mapping.data(), found.bytes), found.bytes));
  return {};
}

// Provides memory for an output whose extents the run determined: the loader's memory, or device memory whose content
// is copied to the loader's memory after the run.
bp_status_t ServedInstance::output(uint32_t number, uint32_t rank, const int64_t* extents, uint64_t bytes,
                                   bp_tensor_t* out_tensor) {
  if (rank > BP_MAX_RANK || (rank && !extents) || !out_tensor) return BP_INVALID_ARGUMENT;
  Writer question;
  question.put(number).array(extents, rank).put(bytes);
  auto answer = running_.lane->ask(running_.call, Operation::kOutput, question.bytes());
  if (!answer.ok()) return answer.status().code();
  Reader in(answer->bytes);
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = in.get<bp_dtype_t>();
  tensor.layout = in.get<uint32_t>();
  Found found;
  found.extents = in.array<int64_t>();
  found.strides = in.array<int64_t>();
  found.bytes = in.get<uint64_t>();
  const uint64_t offset = found.bytes ? in.get<uint64_t>() : 0;
  if (!in.complete() || found.extents.size() != rank) return BP_CORRUPT;
  if (found.bytes) {
    if (answer->files.size() != 1 || !is_large_enough(answer->files[0], offset, found.bytes)) return BP_CORRUPT;
    found.mapping = Mapping::of(answer->files[0].get(), offset, found.bytes, PROT_READ | PROT_WRITE);
    if (!found.mapping) return BP_RESOURCE_EXHAUSTED;
  }
  tensor.buffer = host_buffer(found.mapping.data(), found.bytes);
  if (!memory().is_host()) {
    auto buffer = memory().allocate(found.bytes);
    if (!buffer.ok()) return buffer.status().code();
    found.device = DeviceBuffer(memory(), *buffer);
    tensor.buffer = *buffer;
    tensor.buffer.bytes = found.bytes;
  }
  const std::lock_guard lock(running_.mutex);
  Found& kept = running_.found[number] = std::move(found);
  tensor.rank = rank;
  tensor.extents = kept.extents.data();
  tensor.strides = kept.strides.empty() ? nullptr : kept.strides.data();
  return abi::write(tensor, out_tensor, "out_tensor").code();
}

Status ServedInstance::read_containers(Reader& in) {
  for (const Slot& slot : inputs_)
    if (slot.container) BP_TRY(read_container(*container_api(), slot.container.get(), in));
  return {};
}

Status ServedInstance::write_containers(Writer& out) const {
  for (const Slot& slot : outputs_)
    if (slot.container) BP_TRY(write_container(*container_api(), slot.container.get(), out));
  return {};
}

// ---- the server's part ----------------------------------------------------------------------------------------------

Status Server::create_instance(Lane& lane, Reader& in, Writer& out) {
  BP_ASSIGN(auto program, this->program(in));
  const GraphLane::During during(program->lane, lane);
  BP_ASSIGN(auto made, ServedInstance::make(program));
  out.put(instances_.add(std::move(made)));
  return {};
}

Status Server::destroy_instance(Reader& in) {
  instances_.take(in.get<uint64_t>());
  return {};
}

Status Server::bind(Lane& lane, Message& request) {
  Reader in(request.bytes);
  BP_ASSIGN(const auto instance, this->instance(in));
  const GraphLane::During during(instance->program().lane, lane);
  return instance->bind(in, request.files);
}

Status Server::extents(Lane& lane, Reader& in) {
  BP_ASSIGN(const auto instance, this->instance(in));
  const GraphLane::During during(instance->program().lane, lane);
  return instance->extents(in);
}

Status Server::run(Lane& lane) {
  const Page& page = lane.page();
  const auto instance = instances_.find(page.instance.load(std::memory_order_relaxed));
  if (!instance) return {BP_DEVICE_LOST, "there is no such instance in this process"};
  const RunOrder order{
      page.deadline.load(std::memory_order_relaxed),         page.id.load(std::memory_order_relaxed),
      page.trace_id.load(std::memory_order_relaxed),         page.priority.load(std::memory_order_relaxed),
      page.cancellable.load(std::memory_order_relaxed) != 0, page.tracing.load(std::memory_order_relaxed) != 0};
  return instance->run(lane, order);
}

Status Server::run_with_containers(Lane& lane, Reader& in, Writer& out) {
  const auto numbers = in.get<RunNumbers>();
  const bool cancellable = in.get<uint32_t>();
  const auto instance = instances_.find(numbers.instance);
  if (!instance) return {BP_DEVICE_LOST, "there is no such instance in this process"};
  BP_TRY(instance->read_containers(in));
  if (!in.complete()) return unreadable_request();
  BP_TRY(instance->run(
      lane, {numbers.deadline, numbers.id, numbers.trace_id, numbers.priority, cancellable, numbers.tracing != 0}));
  return instance->write_containers(out);
}

}  // namespace backplane::isolate

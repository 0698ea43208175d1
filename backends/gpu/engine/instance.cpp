// SPDX-License-Identifier: Apache-2.0
#include "engine/instance.h"

#include "engine/planner.h"

namespace backplane::gpu {
namespace {

uint64_t dense_bytes(const bp_tensor_t& tensor) {
  return view::dense_bytes(tensor.dtype, tensor.extents, tensor.rank).value_or(0);
}

}  // namespace

bool Instance::takes(Copies which, const BoundMemory& memory) {
  return which == Copies::kAll || (which == Copies::kCaptured) == memory.can_be_captured();
}

Instance::Instance(const Island& island)
    : sdk::Instance(island),
      island_(island),
      queue_(island.gpu_device().driver().queue()),
      inputs_(island.graph().input_count()),
      outputs_(island.graph().output_count()) {}

Instance::~Instance() {
  if (!flights_.empty() && !flights_.back()->concluded()) stream_queue_->finish_noexcept();
  for (const auto& flight : flights_) flight->conclude();  // their ends may not have been reported yet
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !running_ && callbacks_ == 0; });
  }
  captures_.clear();
  inputs_.clear();
  outputs_.clear();
  queue_->finish_noexcept();
}

bool Instance::reaches(const bp_tensor_t& tensor) const {
  if (tensor.layout != BP_LAYOUT_DENSE) return false;
  return tensor.buffer.memory == nullptr || tensor.buffer.space == island_.gpu_device().device_space();
}

void Instance::bind(const bp_binding_t& binding) {
  const bool is_input = binding.slot < BP_SLOT_OUTPUT;
  const bp_tensor_t* const tensor = binding.slot == BP_SLOT_SCRATCH ? nullptr : binding.tensor;
  if (tensor != nullptr && tensor->buffer.memory != nullptr && reaches(*tensor)) {
    const DeviceMemory& memory = *allocation(tensor->buffer).buffer;
    if (is_input && !memory.is_readable())
      throw sdk::Error(BP_UNSUPPORTED, "kernels may only write to the memory of input " + std::to_string(binding.slot) +
                                           "; create it for reading too");
    if (!is_input && !memory.is_writable())
      throw sdk::Error(BP_UNSUPPORTED, "kernels may only read the memory of output " +
                                           std::to_string(binding.slot - BP_SLOT_OUTPUT) +
                                           "; create it for writing too");
  }
  sdk::Instance::bind(binding);
  if (binding.slot == BP_SLOT_SCRATCH) return;
  auto& memory = is_input ? inputs_[binding.slot] : outputs_[binding.slot - BP_SLOT_OUTPUT];
  if (memory && !memory->is_direct()) captures_.clear();  // captured copies refer to memory that is freed now
  for (auto& output : outputs_)
    if (memory && output && output->is_in(*memory)) output.reset();
  memory.reset();
  bindings_changed_ = true;
  shapes_changed_ = true;
}

void Instance::extents(const sdk::Slots& slots) {
  sdk::Instance::extents(slots);
  shapes_changed_ = true;
}

void Instance::prepare() {
  // In a stream, earlier work must have ended before the host reads an input that the plan depends on, or maps newly
  // bound host memory.
  bool is_alone = run_queue_ == queue_;
  const auto finish = [&] {
    if (!is_alone) run_queue_->finish("stream before a run");
    is_alone = true;
  };
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(stream_failed_, false)) {
      lock.unlock();
      finish();
      unmap_bound_memory();
    }
  }
  const auto wait = [&] {
    if (!is_alone) sync_->wait();
    finish();
  };
  const ReadInput read = [&](uint32_t slot) {
    wait();
    return read_input(slot);
  };
  if (shapes_changed_ || !follows_from(*plan_, read)) replan(read, wait);
  if (bindings_changed_) {
    if (binds_host_memory()) finish();  // the memory is mapped, which blocks
    map_bound_memory();
  }
}

bool Instance::binds_host_memory() const {
  for (uint32_t i = 0; i < inputs_.size(); ++i)
    if (!inputs_[i] && input(i).buffer.memory == nullptr) return true;
  for (uint32_t i = 0; i < outputs_.size(); ++i)
    if (!outputs_[i] && output(i).buffer.memory == nullptr) return true;
  return false;
}

void Instance::replan(const ReadInput& read, const std::function<void()>& wait) {
  std::vector<Shape> shapes;
  for (uint32_t i = 0; i < inputs_.size(); ++i) shapes.emplace_back(input(i).extents, input(i).extents + input(i).rank);
  shapes_changed_ = true;  // stays true if something below fails
  const auto plan_without_inputs = [&]() -> std::shared_ptr<const Plan> {
    if (plan_ && !plan_->host_inputs.empty()) return nullptr;
    try {
      return island_.plan(shapes, {});
    } catch (const InputsUnknown&) {
      return nullptr;
    }
  };
  std::shared_ptr<const Plan> plan = plan_without_inputs();
  if (!plan) {
    wait();  // without the island's lock: another instance, which must plan first, may compute what this one waits for
    plan = island_.plan(shapes, read);
  }
  if (plan != plan_) {
    captures_.clear();
    plan_.reset();
    create_kernels(*plan);
    plan_ = std::move(plan);
    bindings_changed_ = true;
  }
  check_outputs();
  shapes_changed_ = false;
}

std::vector<std::byte> Instance::read_input(uint32_t slot) const {
  const bp_tensor_t& tensor = input(slot);
  if (tensor.buffer.memory == nullptr) return host_copy(tensor);
  const Allocation& own = allocation(tensor.buffer);
  std::vector<std::byte> bytes(dense_bytes(tensor));
  if (!bytes.empty())
    queue_->read(bytes.data(), {own.buffer.get(), own.offset + tensor.buffer.offset}, bytes.size(), true,
                 "reading input " + std::to_string(slot) + " on the host");
  return bytes;
}

void Instance::check_outputs() const {
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    const Shape given(output(i).extents, output(i).extents + output(i).rank);
    if (given == plan_->outputs[i]) continue;
    throw sdk::Error(BP_TYPE_MISMATCH, "output '" + std::string(island_.graph().output(i).name()) + "' has shape " +
                                           to_string(plan_->outputs[i]) +
                                           " for these inputs but was bound with shape " + to_string(given));
  }
}

void Instance::create_kernels(const Plan& plan) {
  Device& device = island_.gpu_device();
  const Driver& driver = device.driver();
  kernels_.clear();
  externals_.clear();
  parts_.clear();
  if (arena_bytes_ < plan.arena_bytes) {  // an arena that is large enough is kept
    arena_bytes_ = 0;
    arena_.reset();  // first, as the device may not have memory for both
    arena_ = driver.buffer(plan.arena_bytes);
    arena_bytes_ = plan.arena_bytes;
  }
  if (plan.may_fault && !fault_) fault_ = driver.buffer(sizeof(int32_t));
  parts_.resize(plan.storages.size());
  const auto part = [&](uint32_t index) -> const Buffer& {
    const Storage& storage = plan.storages[index];
    if (storage.place == Storage::Place::kConstant) return storage.constant;
    if (storage.place == Storage::Place::kFault) return fault_;
    if (!parts_[index]) parts_[index] = driver.part(arena_, storage.offset, storage.bytes);
    return parts_[index];
  };
  for (uint32_t l = 0; l < plan.launches.size(); ++l) {
    const Launch& launch = plan.launches[l];
    kernels_.push_back(device.kernel(launch));
    for (uint32_t a = 0; a < launch.arguments.size(); ++a) {
      const Argument& argument = launch.arguments[a];
      if (argument.storage == BP_NONE) {
        set_argument(kernels_[l], a, argument, {});
        continue;
      }
      const Storage& storage = plan.storages[argument.storage];
      if (storage.place == Storage::Place::kInput || storage.place == Storage::Place::kOutput)
        externals_.push_back({l, a, storage.place, storage.slot});
      else
        set_argument(kernels_[l], a, argument, part(argument.storage));
    }
  }
}

const Buffer& Instance::bound(Storage::Place place, uint32_t slot) const {
  return (place == Storage::Place::kInput ? inputs_ : outputs_)[slot]->buffer();
}

void Instance::map_bound_memory() {
  const Device& device = island_.gpu_device();
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i]) inputs_[i].emplace(device, queue_, input(i));
  }
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i]) continue;
    if (const BoundMemory* const input = input_in(output(i)))
      outputs_[i].emplace(input);
    else
      outputs_[i].emplace(device, queue_, output(i));
  }
  for (const External& e : externals_) {
    set_argument(kernels_[e.launch], e.argument, plan_->launches[e.launch].arguments[e.argument],
                 bound(e.place, e.slot));
  }
  if (device.captures()) identify_bindings();
  bindings_changed_ = false;
}

const BoundMemory* Instance::input_in(const bp_tensor_t& output) const {
  const bp_buffer_t& own = output.buffer;
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    const bp_buffer_t& other = input(i).buffer;
    if (own.bytes != 0 && own.memory == other.memory && own.address == other.address && own.offset == other.offset &&
        own.bytes == other.bytes && own.space == other.space)
      return &*inputs_[i];
  }
  return nullptr;
}

bool Instance::copies_to_itself(const Launch& launch) const {
  if (!launch.is_copy) return false;
  const Storage &from = plan_->storages[launch.reads.front()], &to = plan_->storages[launch.writes.front()];
  return from.place == Storage::Place::kInput && to.place == Storage::Place::kOutput &&
         bound(from.place, from.slot) == bound(to.place, to.slot);
}

void Instance::identify_bindings() {
  bindings_key_.clear();
  captured_commands_ = kernels_.size() + (plan_->may_fault ? 1 : 0);
  for (auto* side : {&inputs_, &outputs_}) {
    for (const auto& memory : *side) {
      memory->append_addresses(island_.gpu_device().driver(), bindings_key_);
      captured_commands_ += !memory->is_direct() && memory->can_be_captured() ? 1 : 0;
    }
  }
}

uint64_t Instance::begin_bindings(CommandQueue& queue, Copies which, std::vector<Event>& events) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < inputs_.size(); ++i)
    if (takes(which, *inputs_[i])) bytes += inputs_[i]->begin(queue, dense_bytes(input(i)), true, events);
  for (uint32_t i = 0; i < outputs_.size(); ++i)
    if (takes(which, *outputs_[i])) bytes += outputs_[i]->begin(queue, dense_bytes(output(i)), false, events);
  return bytes;
}

uint64_t Instance::end_bindings(CommandQueue& queue, Copies which, std::vector<Event>& events) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < inputs_.size(); ++i)
    if (takes(which, *inputs_[i])) bytes += inputs_[i]->end(queue, dense_bytes(input(i)), false, events);
  for (uint32_t i = 0; i < outputs_.size(); ++i)
    if (takes(which, *outputs_[i])) bytes += outputs_[i]->end(queue, dense_bytes(output(i)), true, events);
  return bytes;
}

// Called after a failure: the framework may take back the bound memory.
void Instance::unmap_bound_memory() {
  bindings_changed_ = true;
  captures_.clear();
  for (auto* side : {&inputs_, &outputs_}) {
    for (auto& memory : *side) memory.reset();
  }
}

}  // namespace backplane::gpu

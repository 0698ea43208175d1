// SPDX-License-Identifier: Apache-2.0
#include "engine/instance.h"

#include <chrono>

namespace backplane::opencl {
namespace {

uint64_t now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

uint64_t dense_bytes(const bp_tensor_t& tensor) {
  return view::dense_bytes(tensor.dtype, tensor.extents, tensor.rank).value_or(0);
}

// Kernels that are started before the host looks whether the run was cancelled or is late.
constexpr size_t launches_between_checks = 16;

}  // namespace

Instance::Instance(const Island& island)
    : sdk::Instance(island),
      island_(island),
      queue_(island.opencl_device().queue()),
      inputs_(island.graph().input_count()),
      outputs_(island.graph().output_count()) {}

Instance::~Instance() {
  inputs_.clear();
  outputs_.clear();
  clFinish(queue_.get());
}

bool Instance::reaches(const bp_tensor_t& tensor) const {
  if (tensor.layout != BP_LAYOUT_DENSE) return false;
  return tensor.buffer.memory == nullptr || tensor.buffer.space == island_.opencl_device().device_space();
}

void Instance::bind(const bp_binding_t& binding) {
  sdk::Instance::bind(binding);
  if (binding.slot == BP_SLOT_SCRATCH) return;
  const bool is_input = binding.slot < BP_SLOT_OUTPUT;
  (is_input ? inputs_[binding.slot] : outputs_[binding.slot - BP_SLOT_OUTPUT]).reset();
  bindings_changed_ = true;
  shapes_changed_ = true;
}

void Instance::extents(uint32_t slot, uint32_t rank, const int64_t* extents) {
  sdk::Instance::extents(slot, rank, extents);
  shapes_changed_ = true;
}

void Instance::run(const bp_run_t& run) {
  const auto read = [this](uint32_t slot) { return read_input(slot); };
  if (shapes_changed_ || !follows_from(*plan_, read)) replan();
  if (bindings_changed_) reach_bound();
  try {
    work(run);
  } catch (...) {
    clFinish(queue_.get());  // nothing of this run touches bound memory any more
    bindings_changed_ = true;
    for (auto* side : {&inputs_, &outputs_}) {
      for (auto& memory : *side) memory.reset();
    }
    throw;
  }
}

void Instance::replan() {
  std::vector<Shape> shapes;
  for (uint32_t i = 0; i < inputs_.size(); ++i) shapes.emplace_back(input(i).extents, input(i).extents + input(i).rank);
  const auto read = [this](uint32_t slot) { return read_input(slot); };
  if (auto plan = island_.plan(shapes, read); plan != plan_) {
    plan_ = std::move(plan);
    place_kernels();
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
    opencl::check(clEnqueueReadBuffer(queue_.get(), own.buffer.get(), CL_TRUE, own.offset + tensor.buffer.offset,
                                      bytes.size(), bytes.data(), 0, nullptr, nullptr),
                  "reading input " + std::to_string(slot) + " on the host");
  return bytes;
}

void Instance::check_outputs() const {
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    const Shape given(output(i).extents, output(i).extents + output(i).rank);
    if (given == plan_->outputs[i]) continue;
    throw sdk::Error(BP_TYPE_MISMATCH, "output '" + std::string(island_.graph().output(i).name()) + "' is " +
                                           to_string(plan_->outputs[i]) + " for these inputs and was bound as " +
                                           to_string(given));
  }
}

void Instance::place_kernels() {
  Device& device = island_.opencl_device();
  kernels_.clear();
  externals_.clear();
  arena_ = plan_->arena_bytes != 0 ? device.buffer(plan_->arena_bytes) : Buffer();
  fault_ = plan_->may_fault ? device.buffer(sizeof(cl_int)) : Buffer();
  parts_.assign(plan_->storages.size(), Buffer());
  const auto part = [&](uint32_t index) -> const Buffer& {
    const Storage& storage = plan_->storages[index];
    if (storage.place == Storage::Place::kConstant) return *storage.constant;
    if (storage.place == Storage::Place::kFault) return fault_;
    if (!parts_[index]) parts_[index] = device.part(arena_, storage.offset, storage.bytes);
    return parts_[index];
  };
  for (uint32_t l = 0; l < plan_->launches.size(); ++l) {
    const Launch& launch = plan_->launches[l];
    kernels_.push_back(device.kernels().kernel(launch.source));
    for (uint32_t a = 0; a < launch.arguments.size(); ++a) {
      const Argument& argument = launch.arguments[a];
      if (argument.storage == BP_NONE) {
        set_argument(kernels_[l], a, argument, {});
        continue;
      }
      const Storage& storage = plan_->storages[argument.storage];
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

void Instance::reach_bound() {
  const Device& device = island_.opencl_device();
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i]) inputs_[i].emplace(device, queue_.get(), input(i));
  }
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i]) outputs_[i].emplace(device, queue_.get(), output(i));
  }
  for (const External& e : externals_) {
    set_argument(kernels_[e.launch], e.argument, plan_->launches[e.launch].arguments[e.argument],
                 bound(e.place, e.slot));
  }
  bindings_changed_ = false;
}

void Instance::work(const bp_run_t& run) {
  const bool tracing = host().tracing();
  const bool limited = run.cancel != nullptr || run.deadline != 0;
  const uint64_t begin = tracing ? now() : 0;
  uint64_t copied = 0;
  for (uint32_t i = 0; i < inputs_.size(); ++i) copied += inputs_[i]->begin(dense_bytes(input(i)), true);
  for (uint32_t i = 0; i < outputs_.size(); ++i) copied += outputs_[i]->begin(dense_bytes(output(i)), false);
  static constexpr cl_int none = 0;
  if (plan_->may_fault)
    opencl::check(
        clEnqueueWriteBuffer(queue_.get(), fault_.get(), CL_FALSE, 0, sizeof none, &none, 0, nullptr, nullptr), "run");
  std::vector<Event> events;
  for (size_t l = 0; l < kernels_.size(); ++l) {
    if (limited && l % launches_between_checks == 0) {
      if (l != 0) opencl::check(clFinish(queue_.get()), "run");
      host().check(run.cancel, run.deadline);
    }
    cl_event event = nullptr;
    enqueue(queue_.get(), kernels_[l], plan_->launches[l], tracing ? &event : nullptr);
    if (tracing) events.emplace_back(event);
  }
  for (uint32_t i = 0; i < inputs_.size(); ++i) copied += inputs_[i]->end(dense_bytes(input(i)), false);
  for (uint32_t i = 0; i < outputs_.size(); ++i) copied += outputs_[i]->end(dense_bytes(output(i)), true);
  opencl::check(clFinish(queue_.get()), "run");
  if (plan_->may_fault) check_fault();
  if (!tracing) return;
  trace(run, events);
  if (copied == 0) return;
  bp_span_t span{};
  span.kind = BP_SPAN_COPY;
  span.begin = begin;
  span.end = now();
  span.trace_id = run.trace_id;
  span.node = BP_NO_NODE;
  span.bytes = copied;
  span.name = sdk::text("copies to and from the host");
  host().trace(span);
}

void Instance::check_fault() const {
  cl_int fault = 0;
  opencl::check(clEnqueueReadBuffer(queue_.get(), fault_.get(), CL_TRUE, 0, sizeof fault, &fault, 0, nullptr, nullptr),
                "run");
  if (fault == 0) return;
  const sdk::Node node = island_.graph().node(static_cast<uint32_t>(fault) - 1);
  throw sdk::Error(BP_INVALID_ARGUMENT,
                   std::string(node.op_type()) + " '" + std::string(node.name()) +
                       "': an index is beyond the extent that it chooses from",
                   node.id());
}

// The device's clock is told to the host's by their difference now, when the last kernel has just ended.
void Instance::trace(const bp_run_t& run, const std::vector<Event>& events) const {
  const auto time = [](const Event& event, cl_profiling_info what) {
    cl_ulong t = 0;
    clGetEventProfilingInfo(event.get(), what, sizeof t, &t, nullptr);
    return t;
  };
  if (events.empty()) return;
  const uint64_t shift = now() - time(events.back(), CL_PROFILING_COMMAND_END);
  for (size_t l = 0; l < events.size(); ++l) {
    const Launch& launch = plan_->launches[l];
    bp_span_t span{};
    span.kind = BP_SPAN_COMPUTE;
    span.begin = time(events[l], CL_PROFILING_COMMAND_START) + shift;
    span.end = time(events[l], CL_PROFILING_COMMAND_END) + shift;
    span.trace_id = run.trace_id;
    span.node = launch.node < island_.graph().node_count() ? island_.graph().node(launch.node).id() : BP_NO_NODE;
    span.flags = BP_SPAN_DEVICE_CLOCK;
    span.name = sdk::text(launch.source.entry);
    host().trace(span);
  }
}

}  // namespace backplane::opencl

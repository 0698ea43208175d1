// SPDX-License-Identifier: Apache-2.0
#include "run/exec.h"

#include <algorithm>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "base/abi.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/keep.h"
#include "host/container.h"
#include "host/semaphore.h"
#include "host/shared_memory.h"

namespace backplane {
namespace {

std::string format(uint32_t rank, const int64_t* extents) {
  std::string text = "[";
  for (uint32_t i = 0; i < rank; ++i) text += (i ? "," : "") + std::to_string(extents[i]);
  return text + "]";
}

std::string format(const model::Graph& graph, const model::Type& type) {
  if (type.rank < 0) return "any shape";
  std::string text = "[";
  for (size_t i = 0; i < type.dims.size(); ++i) {
    const bp_dim_t& dim = type.dims[i];
    text += i ? "," : "";
    text += dim.extent >= 0                     ? std::to_string(dim.extent)
            : dim.symbol < graph.symbols.size() ? graph.symbols[dim.symbol].name
                                                : "?";
  }
  return text + "]";
}

Status lost() {
  return {BP_DEVICE_LOST,
          "a run of this exec was abandoned because a device did not return from it: create another exec"};
}

std::string_view kind_name(uint32_t kind) {
  constexpr std::string_view kNames[] = {"unknown",    "a tensor",    "a sparse tensor",
                                         "a sequence", "an optional", "a map"};
  return kind < std::size(kNames) ? kNames[kind] : "unknown";
}

bool is_tensor(const model::Type& type) {
  return type.kind == 0 || type.kind == BP_KIND_TENSOR;
}

}  // namespace

Result<std::unique_ptr<Exec>> Exec::create(const std::shared_ptr<const CompiledModel>& model) {
  if (!model->compiled())
    return Status(BP_BAD_STATE,
                  "the session was created with BP_SESSION_PLACE_ONLY: it has no programs to run; create a session "
                  "without that flag");
  auto exec = std::unique_ptr<Exec>(new Exec(model->current()));
  exec->inputs_.resize(exec->model_->model().graph.inputs.size());
  exec->outputs_.resize(exec->model_->model().graph.outputs.size());
  for (;;) {
    Fault fault{exec->make_run()};
    if (fault.status.ok()) return exec;
    if (fault.status.code() != BP_DEVICE_LOST || !exec->model_->fail_over(fault).ok()) return std::move(fault.status);
    exec->adopt_current_model();
  }
}

Exec::~Exec() {
  worker_.reset();  // waits for a submitted run
  try {
    static_cast<void>(wait_for_stream());
  } catch (...) {  // out of memory for the error message
  }
  while (busy_.load(std::memory_order_acquire)) busy_.wait(true);
  drop_run();
}

void Exec::drop_run() noexcept {
  if (abandoned_device()) return keep_run_forever();
  planned_ = false;
  run_.reset();
}

const Device* Exec::abandoned_device() const {
  if (!run_) return nullptr;
  const auto found = std::ranges::find_if(run_->graph->devices, &Device::given_up);
  return found != run_->graph->devices.end() ? *found : nullptr;
}

void Exec::keep_run_forever() noexcept {
  planned_ = false;
  keep_value_for_good(std::move(run_));
}

// Called after every run, also one that threw an exception.
void Exec::lose_abandoned() noexcept {
  if (!run_ || !run_->runner->abandoned()) return;
  keep_run_forever();
  lost_ = true;
}

Status Exec::make_run() {
  drop_run();
  BoundLocations locations;
  for (const Binding& binding : inputs_) locations.inputs.push_back(binding.location());
  for (const Binding& binding : outputs_) locations.outputs.push_back(binding.location());
  auto run = std::make_unique<Run>();
  run->model = model_;
  BP_ASSIGN(run->graph,
            RunGraph::make(model_->model().graph, model_->programs(), model_->environment().services(), locations));
  BP_ASSIGN(run->state, RunState::make(*run->graph));
  run->plan = std::make_unique<RunPlan>(*run->graph, *run->state);
  run->runner = std::make_unique<Runner>(*model_, *run->graph, *run->state, *run->plan);
  run_ = std::move(run);
  return {};
}

// ---- binding --------------------------------------------------------------------------------------------------------

model::ValueId Exec::value_of(uint32_t slot) const {
  const model::Graph& graph = model_->model().graph;
  return slot >= BP_SLOT_OUTPUT ? graph.outputs[slot - BP_SLOT_OUTPUT] : graph.inputs[slot];
}

std::string Exec::slot_name(uint32_t slot) const {
  return (slot >= BP_SLOT_OUTPUT ? "output '" : "input '") + model_->model().graph.values[value_of(slot)].name + "'";
}

Status Exec::usable() const {
  if (busy_.load(std::memory_order_acquire))
    return {BP_BUSY, "a run of this exec is in flight: wait until the run has ended"};
  return lost_ ? lost() : Status();
}

Result<Exec::Binding*> Exec::binding(uint32_t slot) {
  BP_TRY(usable());
  const bool is_output = slot >= BP_SLOT_OUTPUT;
  auto& bindings = is_output ? outputs_ : inputs_;
  const uint32_t index = is_output ? slot - BP_SLOT_OUTPUT : slot;
  if (index >= bindings.size())
    return Status(BP_NOT_FOUND, "the model has " + std::to_string(bindings.size()) +
                                    (is_output ? " outputs" : " inputs") + "; there is no slot " +
                                    std::to_string(index));
  return &bindings[index];
}

uint32_t Exec::run_value_of(uint32_t slot) const {
  return slot >= BP_SLOT_OUTPUT ? run_->graph->outputs[slot - BP_SLOT_OUTPUT] : run_->graph->inputs[slot];
}

bool Exec::needs_other_run(uint32_t slot, const MemoryLocation& before, const MemoryLocation& after) const {
  if (before.device != after.device || before.space != after.space) return true;
  return run_ && before.shareable != after.shareable && run_->graph->values[run_value_of(slot)].in_process;
}

Status Exec::check(model::ValueId value, bp_dtype_t dtype, uint32_t rank, const int64_t* extents) const {
  const model::Graph& graph = model_->model().graph;
  const model::Type& type = graph.values[value].type;
  if (type.dtype && dtype != type.dtype)
    return {BP_TYPE_MISMATCH,
            "expects " + std::string(dtype_name(type.dtype)) + ", got " + std::string(dtype_name(dtype))};
  if (rank > BP_MAX_RANK)
    return {BP_INVALID_ARGUMENT,
            "the rank is " + std::to_string(rank) + "; the largest is " + std::to_string(BP_MAX_RANK)};
  if (rank && !extents) return {BP_INVALID_ARGUMENT, "the extents are NULL, but the rank is " + std::to_string(rank)};
  bool fits = type.rank < 0 || static_cast<uint32_t>(type.rank) == rank;
  for (uint32_t i = 0; i < rank; ++i) {
    if (extents[i] < 0) return {BP_INVALID_ARGUMENT, "extents " + format(rank, extents) + " must not be negative"};
    if (fits && type.rank >= 0 && type.dims[i].extent >= 0 && type.dims[i].extent != extents[i]) fits = false;
  }
  if (!fits) return {BP_TYPE_MISMATCH, "expects " + format(graph, type) + ", got " + format(rank, extents)};
  return {};
}

Status Exec::bind(uint32_t slot, const bp_tensor_t& tensor) {
  BP_ASSIGN(Binding * binding, this->binding(slot));
  const model::ValueId value = value_of(slot);
  const std::string name = slot_name(slot);
  if (!is_tensor(model_->model().graph.values[value].type))
    return {BP_TYPE_MISMATCH, name + " is not a tensor: use bp_exec_bind_container"};
  if (tensor.layout != BP_LAYOUT_DENSE)
    return {BP_UNSUPPORTED, name + ": the layout is " + std::to_string(tensor.layout) +
                                "; only dense row-major tensors (BP_LAYOUT_DENSE) can be bound"};
  BP_TRY(check(value, tensor.dtype, tensor.rank, tensor.extents).context(name));
  const uint64_t bytes = dense_bytes(tensor.dtype, tensor.rank, tensor.extents);
  if (bytes > tensor.buffer.bytes)
    return {BP_BUFFER_TOO_SMALL, name + " needs " + std::to_string(bytes) + " bytes, but its buffer has " +
                                     std::to_string(tensor.buffer.bytes)};
  BP_TRY(abi::check_buffer(tensor.buffer, name + ": buffer"));
  if (slot >= BP_SLOT_OUTPUT && (tensor.buffer.flags & BP_BUFFER_READ_ONLY))
    return {BP_INVALID_ARGUMENT, name + ": the buffer is read-only (BP_BUFFER_READ_ONLY)"};
  BP_ASSIGN(Device* const place, check_place(model_->environment(), tensor.buffer, name + ": buffer"));
  BP_TRY(wait_for_stream());
  Device* const device = tensor.buffer.memory ? place : nullptr;
  if (device) {
    Services& services = model_->environment().services();
    BP_ASSIGN(const Memory memory, Memory::of(*device, services));
    if (!memory.device()) BP_TRY(Memory::of_space(*device, tensor.buffer.space, services).take_status().context(name));
  } else if (tensor.buffer.bytes && !tensor.buffer.address) {
    return {BP_INVALID_ARGUMENT,
            name + ": buffer.address is NULL, but buffer.bytes is " + std::to_string(tensor.buffer.bytes)};
  }
  if (slot >= BP_SLOT_OUTPUT) ran_ = false;  // the memory of the last result may be released below
  const MemoryLocation before = binding->location();
  *binding = {true,
              tensor.dtype,
              {tensor.extents, tensor.extents + tensor.rank},
              tensor.buffer,
              new_generation(),
              device,
              nullptr,
              !device && overlaps_shared(host_address(tensor.buffer), tensor.buffer.bytes)};
  if (needs_other_run(slot, before, binding->location()))
    drop_run();  // because values are then copied between other memories
  else if (run_)
    run_->state->forget_imports(run_value_of(slot));
  if (!tensor.buffer.memory) binding->buffer = part(tensor.buffer, 0, tensor.buffer.bytes);
  planned_ = false;
  return {};
}

Status Exec::bind_container(uint32_t slot, bp_container_t* container) {
  BP_ASSIGN(Binding * binding, this->binding(slot));
  const model::Type& type = model_->model().graph.values[value_of(slot)].type;
  if (is_tensor(type)) return {BP_TYPE_MISMATCH, slot_name(slot) + " is a tensor: use bp_exec_bind"};
  if (!container) return {BP_INVALID_ARGUMENT, slot_name(slot) + ": the container is NULL"};
  // A container inside another one has kind 0: its kind follows from the outer one's type, which is not known here.
  if (container->kind() != 0 && container->kind() != type.kind)
    return {BP_TYPE_MISMATCH, slot_name(slot) + " is " + std::string(kind_name(type.kind)) + ", but the container is " +
                                  std::string(kind_name(container->kind())) +
                                  ": create it with bp_container_create for that kind"};
  BP_TRY(wait_for_stream());
  if (slot >= BP_SLOT_OUTPUT) ran_ = false;  // the last result is in the container that was used before
  binding->bound = true;
  binding->container = container;
  planned_ = false;
  return {};
}

Status Exec::unbind(uint32_t slot) {
  BP_ASSIGN(Binding * binding, this->binding(slot));
  if (!binding->bound) return {};
  BP_TRY(wait_for_stream());
  drop_run();  // also drops the bindings of its instances
  *binding = {};
  return {};
}

Status Exec::check_extents(uint32_t slot, uint32_t rank, const int64_t* extents) {
  BP_ASSIGN(Binding * binding, this->binding(slot));
  const std::string name = slot_name(slot);
  if (!binding->bound || binding->container)
    return {BP_BAD_STATE, name + " is not bound to a tensor: call bp_exec_bind first"};
  BP_TRY(check(value_of(slot), binding->dtype, rank, extents).context(name));
  const uint64_t bytes = dense_bytes(binding->dtype, rank, extents);
  if (bytes > binding->buffer.bytes)
    return {BP_BUFFER_TOO_SMALL, name + " needs " + std::to_string(bytes) + " bytes, its buffer has " +
                                     std::to_string(binding->buffer.bytes)};
  return {};
}

// Allocates nothing once the first extents are set, so that no error leaves only some of the extents changed.
void Exec::set_extents(std::vector<SlotExtents> slots) {
  const auto binding_of = [this](uint32_t slot) -> Binding& {
    return slot >= BP_SLOT_OUTPUT ? outputs_[slot - BP_SLOT_OUTPUT] : inputs_[slot];
  };
  if (std::ranges::all_of(slots, [&](const SlotExtents& one) { return binding_of(one.first).extents == one.second; }))
    return;
  static_cast<void>(wait_for_stream());  // cannot fail without a deadline
  for (auto& [slot, extents] : slots) binding_of(slot).extents.swap(extents);
  planned_ = false;
}

Status Exec::extents(const bp_slot_extents_t* slots, uint32_t count, uint32_t stride) {
  std::vector<SlotExtents> changed;
  for (uint32_t i = 0; i < count; ++i) {
    const bp_slot_extents_t slot = abi::element(slots, i, stride);
    BP_TRY(check_extents(slot.slot, slot.rank, slot.extents));
    changed.emplace_back(slot.slot, std::vector<int64_t>(slot.extents, slot.extents + slot.rank));
  }
  set_extents(std::move(changed));
  return {};
}

Status Exec::symbols(const bp_symbol_extent_t* symbols, uint32_t count, uint32_t stride) {
  BP_TRY(usable());  // first, because a run in flight may switch to another model
  const model::Graph& graph = model_->model().graph;
  std::vector<std::optional<int64_t>> wanted(graph.symbols.size());
  for (uint32_t i = 0; i < count; ++i) {
    const bp_symbol_extent_t given = abi::element(symbols, i, stride);
    if (given.symbol >= wanted.size())
      return {BP_NOT_FOUND, "the model has " + std::to_string(wanted.size()) +
                                " named dimensions; there is none with index " + std::to_string(given.symbol)};
    if (wanted[given.symbol])
      return {BP_INVALID_ARGUMENT, "dimension '" + graph.symbols[given.symbol].name + "' is given twice: as " +
                                       std::to_string(*wanted[given.symbol]) + " and as " +
                                       std::to_string(given.extent)};
    wanted[given.symbol] = given.extent;
  }
  std::vector<SlotExtents> changed;
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    const model::Type& type = graph.values[graph.inputs[i]].type;
    if (!inputs_[i].bound || !is_tensor(type)) continue;
    std::vector<int64_t> extents = inputs_[i].extents;
    bool has = false;
    for (size_t d = 0; d < type.dims.size(); ++d) {
      const uint32_t symbol = type.dims[d].extent < 0 ? type.dims[d].symbol : BP_NONE;
      if (symbol >= wanted.size() || !wanted[symbol]) continue;
      extents[d] = *wanted[symbol];
      has = true;
    }
    if (!has) continue;
    BP_TRY(check_extents(i, static_cast<uint32_t>(extents.size()), extents.data()));
    changed.emplace_back(i, std::move(extents));
  }
  set_extents(std::move(changed));
  return {};
}

// ---- running --------------------------------------------------------------------------------------------------------

Status Exec::check_symbols() const {
  const model::Graph& graph = model_->model().graph;
  // By symbol: its extent, and the input that has it.
  std::vector<std::pair<int64_t, uint32_t>> seen(graph.symbols.size(), {-1, 0});
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    const model::Type& type = graph.values[graph.inputs[i]].type;
    if (!inputs_[i].bound)
      return {BP_BAD_STATE, slot_name(i) + " is not bound: call bp_exec_bind" + (is_tensor(type) ? "" : "_container")};
    for (size_t d = 0; is_tensor(type) && d < type.dims.size(); ++d) {
      const uint32_t symbol = type.dims[d].extent < 0 ? type.dims[d].symbol : BP_NONE;
      if (symbol >= seen.size()) continue;
      const int64_t extent = inputs_[i].extents[d];
      if (extent < graph.symbols[symbol].min || extent > graph.symbols[symbol].max)
        return {BP_TYPE_MISMATCH, slot_name(i) + ": dimension '" + graph.symbols[symbol].name + "' is " +
                                      std::to_string(extent) + ", but the session was created for " +
                                      std::to_string(graph.symbols[symbol].min) + " to " +
                                      std::to_string(graph.symbols[symbol].max)};
      if (seen[symbol].first >= 0 && seen[symbol].first != extent)
        return {BP_TYPE_MISMATCH, slot_name(i) + ": dimension '" + graph.symbols[symbol].name + "' is " +
                                      std::to_string(extent) + ", but " + slot_name(seen[symbol].second) + " has " +
                                      std::to_string(seen[symbol].first)};
      seen[symbol] = {extent, i};
    }
  }
  return {};
}

void Exec::apply_bindings() {
  const RunGraph& graph = *run_->graph;
  const auto pass_on = [&](const Binding& binding, uint32_t value) {
    if (graph.values[value].kind != BP_KIND_TENSOR)
      run_->state->bind_container(value, binding.container);
    else
      run_->state->bind_tensor(value, binding.dtype, binding.buffer, binding.generation);
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].bound) continue;
    const uint32_t value = graph.inputs[i];
    pass_on(inputs_[i], value);
    if (graph.values[value].kind == BP_KIND_TENSOR) run_->state->set_input_extents(value, inputs_[i].extents);
  }
  for (size_t o = 0; o < outputs_.size(); ++o)
    if (outputs_[o].bound) pass_on(outputs_[o], graph.outputs[o]);
}

Status Exec::prepare() {
  if (planned_) return {};
  BP_TRY(check_symbols());
  if (!run_) BP_TRY(make_run());
  apply_bindings();
  BP_TRY(run_->plan->make());
  planned_ = true;
  return {};
}

void Exec::adopt_current_model() {
  if (model_->is_current()) return;
  drop_run();
  model_ = model_->current();
}

// Runs the model. If a device fails and the model can fail over to other devices, runs it again there.
Status Exec::attempt(const bp_run_t& options) {
  for (;;) {
    adopt_current_model();
    Fault fault;
    bool is_spoiled = false;  // an input may have been updated, so the run cannot be repeated
    if (const Device* const device = abandoned_device()) {  // abandoned in another exec's run, or by the framework
      fault.status = device->lost();
      fault.device = device;
    } else if (fault.status = prepare(); fault.status.ok()) {
      try {
        fault.status = run_->runner->run(options);
      } catch (...) {
        lose_abandoned();
        throw;
      }
      lose_abandoned();
      if (lost_) return std::move(fault.status);
      fault.device = run_->runner->failed_device();
      fault.island = run_->runner->failed_step();
      is_spoiled = run_->plan->updates_inputs();
    }
    const bp_status_t code = fault.status.code();
    if (code != BP_DEVICE_LOST && code != BP_INTERNAL) return std::move(fault.status);
    // Each failover excludes a device, or an island from a device, so the loop ends.
    const bool fails_over = !passed(options.deadline) && model_->fail_over(fault).ok();
    if (is_spoiled)
      return std::move(fault.status)
          .context("an input that is updated in place may have changed, so write it again before the next run");
    if (!fails_over) return std::move(fault.status);
  }
}

Status Exec::execute(const bp_run_t& options) {
  ran_ = false;
  if (lost_) return lost();
  const uint64_t deadline = options.deadline ? options.deadline : BP_FOREVER;
  if (stream_) BP_TRY(wait_for_stream(deadline, options.cancel));
  for (uint32_t i = 0; i < options.wait_count; ++i) {
    const bp_point_t& point = options.waits[i];
    BP_TRY(point.kind == BP_POINT_NATIVE ? semaphore_of(point).wait(point.value, deadline, options.cancel)
                                         : bp_point_host(&point)->wait(point.value, deadline, options.cancel));
  }
  BP_TRY(attempt(options));
  ran_ = true;
  return {};
}

Status Exec::wait_for_stream(uint64_t deadline, const bp_cancel_t* cancel) {
  if (!stream_) return {};
  Status status = stream_->drain(deadline, cancel);
  const bool is_left = status.code() == BP_TIMED_OUT || status.code() == BP_CANCELLED;
  if (is_left) return status;
  stream_ = nullptr;  // the work has ended, or its device was abandoned and no more waiting is needed
  return {};
}

Status Exec::enqueue_in(const bp_run_t& options) {
  if (lost_) return lost();
  const std::shared_ptr<FrameworkStream> stream = stream_of(options.stream);
  if (stream->device().given_up()) return stream->device().lost();
  if (stream_ != stream || !planned_ || !model_->is_current())
    BP_TRY(wait_for_stream(options.deadline ? options.deadline : BP_FOREVER, options.cancel));
  ran_ = false;
  adopt_current_model();
  if (const Device* const device = abandoned_device()) return device->lost();
  BP_TRY(prepare());
  const std::shared_ptr<FrameworkStream> before = std::exchange(stream_, stream);
  try {
    Status status = run_->runner->enqueue_in(*stream, options);
    ran_ = status.ok();
    if (!ran_) stream_ = before;  // nothing of the run is left in the stream
    lose_abandoned();
    return status;
  } catch (...) {  // part of the run may be in the stream
    Status abandoned = run_->runner->clear(*stream, options.deadline);
    stream_ = nullptr;
    lose_abandoned();
    if (abandoned.ok()) throw;
    return abandoned;
  }
}

void Exec::release() {
  busy_.store(false, std::memory_order_release);
  busy_.notify_all();
}

namespace {

// Checks `run` and returns it, or a copy of it in `room` if it lacks newer fields or has the deadline BP_FOREVER, which
// becomes 0. If `run` is null, the copy has the default values.
Result<const bp_run_t*> read_run(const bp_run_t* run, bp_run_t& room) {
  if (!run) {
    room = {};
    room.size = sizeof room;
    return &room;
  }
  BP_ASSIGN(run, abi::read_in_place(run, "run", room));
  const bp_run_t& options = *run;
  BP_TRY(check_run(options));
  if (options.id >= kFirstLoaderRun)
    return Status(BP_INVALID_ARGUMENT, "run.id is " + std::to_string(options.id) + "; it must be below 2^63");
  for (uint32_t i = 0; i < options.signal_count && !options.stream; ++i)
    if (options.signals[i].kind == BP_POINT_NATIVE) BP_TRY(semaphore_of(options.signals[i]).can_signal());
  if (options.deadline != BP_FOREVER) return run;
  room = options;
  room.size = sizeof room;
  room.deadline = 0;
  return &room;
}

}  // namespace

Status Exec::run(const bp_run_t* run) {
  bp_run_t room;
  BP_ASSIGN(const bp_run_t* const given, read_run(run, room));
  const bp_run_t& options = *given;
  if (busy_.exchange(true, std::memory_order_acquire))
    return {BP_BUSY, "a run of this exec is in flight: use another exec"};
  Status status;
  try {
    status = options.stream ? enqueue_in(options) : execute(options);
    if (status.ok() && !options.stream) call_done(options, status);
  } catch (...) {
    release();
    throw;
  }
  release();
  if (status.ok() && !options.stream) signal_points({options.signals, options.signal_count}, status);
  return status;
}

Status Exec::submit(const bp_run_t* run) {
  bp_run_t room;
  BP_ASSIGN(const bp_run_t* const given, read_run(run, room));
  const bp_run_t options = *given;
  if (options.stream)
    return {BP_INVALID_ARGUMENT,
            "run.stream must be NULL in bp_exec_submit: for a run in a stream call bp_exec_run, which then returns at "
            "once"};
  BP_TRY(check_reported(options));
  if (busy_.exchange(true, std::memory_order_acquire))
    return {BP_BUSY, "a run of this exec is in flight: use another exec"};
  try {
    if (!worker_) worker_ = std::make_unique<Worker>();
    submitted_ = {options.waits, options.waits + options.wait_count};
    submitted_.insert(submitted_.end(), options.signals, options.signals + options.signal_count);
    // At the end, `done` is called first, then the exec accepts the next run, then the signals advance.
    worker_->post([this, own = options, no_memory = Status(BP_RESOURCE_EXHAUSTED, {})]() mutable {
      own.waits = submitted_.data();
      Status status;
      try {
        status = execute(own);
      } catch (const std::bad_alloc&) {
        status = std::move(no_memory);  // there may be no memory for a new Status
      } catch (const std::exception& thrown) {
        status = Status(BP_RESOURCE_EXHAUSTED, thrown.what());
      }
      call_done(own, status);
      const std::vector<bp_point_t> points = std::move(submitted_);
      release();
      signal_points(std::span(points).subspan(own.wait_count), status);
    });
  } catch (...) {  // the run was not accepted
    release();
    throw;
  }
  return {};
}

Result<uint32_t> Exec::output_slot(uint32_t index) {
  // Clamps `index`: if the sum wrapped around, it would be the slot of an input.
  const uint32_t slot = BP_SLOT_OUTPUT + std::min(index, UINT32_MAX - BP_SLOT_OUTPUT);
  BP_TRY(binding(slot).take_status());
  return slot;
}

Status Exec::output(uint32_t index, bp_tensor_t& out) {
  BP_ASSIGN(const uint32_t slot, output_slot(index));
  if (!is_tensor(model_->model().graph.values[value_of(slot)].type))
    return {BP_TYPE_MISMATCH, slot_name(slot) + " is not a tensor: use bp_exec_output_container"};
  if (!ran_ || !run_) return {BP_BAD_STATE, "there is no result: call bp_exec_run first"};
  const uint32_t value = run_->graph->outputs[index];
  bp_tensor_t tensor = run_->state->tensor({value, run_->graph->values[value].user_replica});
  tensor.buffer.bytes = run_->state->value(value).bytes;
  return abi::write(tensor, &out, "out_tensor");
}

Status Exec::output_container(uint32_t index, bp_container_t*& out) {
  BP_ASSIGN(const uint32_t slot, output_slot(index));
  if (is_tensor(model_->model().graph.values[value_of(slot)].type))
    return {BP_TYPE_MISMATCH, slot_name(slot) + " is a tensor: use bp_exec_output"};
  if (!ran_ || !run_) return {BP_BAD_STATE, "there is no result: call bp_exec_run first"};
  out = run_->state->value(run_->graph->outputs[index]).container;
  return {};
}

}  // namespace backplane

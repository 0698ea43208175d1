// SPDX-License-Identifier: Apache-2.0
#include "run/exec.h"

#include <algorithm>
#include <cstring>

#include "abi.h"
#include "host/cancel.h"
#include "host/container.h"
#include "host/semaphore.h"
#include "ops/dtype.h"
#include "run/memory_plan.h"
#include "run/clock.h"

namespace backplane {
namespace {

// Appends copies of everything in `from`.
Status copy_container(const bp_container_t& from, bp_container_t& to) {
  to.clear();
  for (uint64_t i = 0; i < from.count(); ++i) {
    bp_bytes_t key{};
    (void)from.key(i, &key);  // only maps have keys
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    if (from.tensor(i, &tensor).ok()) {
      BP_TRY(to.append(key, &tensor));
      continue;
    }
    bp_container_t *inner = nullptr, *copy = nullptr;
    BP_TRY(from.child(i, &inner));
    BP_TRY(to.append_child(key, &copy));
    BP_TRY(copy_container(*inner, *copy));
  }
  return {};
}

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
    text += dim.extent >= 0 ? std::to_string(dim.extent) : dim.symbol < graph.symbols.size() ? graph.symbols[dim.symbol].name : "?";
  }
  return text + "]";
}

// The clock of deadlines, read only where there is one.
bool passed(uint64_t deadline) { return deadline && deadline <= monotonic_now(); }

}  // namespace

Result<std::unique_ptr<Exec>> Exec::create(std::shared_ptr<const Session> session) {
  if (!session->compiled())
    return Status(BP_BAD_STATE, "the session was made with BP_SESSION_PLACE_ONLY: it has no programs to run");
  auto exec = std::unique_ptr<Exec>(new Exec(std::move(session)));
  BP_TRY(exec->build());
  return exec;
}

Exec::~Exec() {
  worker_.reset();  // waits for a submitted run
  while (busy_.load(std::memory_order_acquire)) busy_.wait(true);
  for (Step& step : steps_)
    if (step.instance) step.program->plugin->instance->destroy(step.instance);
  for (Edge& edge : edges_)
    if (edge.owns_container) delete edge.container;
}

Status Exec::build() {
  const model::Graph& graph = session_->model().graph;
  std::vector<uint32_t> edge_of(graph.values.size(), BP_NONE);
  const auto new_edge = [&](model::ValueId value) {
    Edge& edge = edges_.emplace_back();
    const model::Type& type = graph.values[value].type;
    edge.value = value;
    edge.kind = type.kind ? type.kind : BP_KIND_TENSOR;
    edge.dtype = type.dtype;
    if (edge.kind != BP_KIND_TENSOR) {
      edge.container = new bp_container_t(edge.kind);
      edge.owns_container = true;
    }
    return static_cast<uint32_t>(edges_.size() - 1);
  };
  const auto edge_for = [&](model::ValueId value) {
    return edge_of[value] != BP_NONE ? edge_of[value] : edge_of[value] = new_edge(value);
  };

  for (model::ValueId value : graph.inputs) {
    input_edges_.push_back(edge_for(value));
    edges_.back().user = true;
  }
  for (const auto& program : session_->programs()) {
    Step& step = steps_.emplace_back();
    step.program = program.get();
    const uint32_t index = static_cast<uint32_t>(steps_.size() - 1);
    for (model::ValueId value : program->inputs) {
      step.inputs.push_back(edge_for(value));
      edges_[step.inputs.back()].last = index;
    }
    for (model::ValueId value : program->outputs) {
      step.outputs.push_back(edge_for(value));
      edges_[step.outputs.back()].first = edges_[step.outputs.back()].last = index;
    }
    PluginError error;
    BP_TRY(error.status(program->plugin->instance->create(program->handle, &step.instance, error.get()),
                        "device '" + program->device->name() + "'"));
  }
  for (model::ValueId value : graph.outputs) {
    const uint32_t written = edge_of[value];
    const bool direct = written != BP_NONE && !edges_[written].user && !edges_[written].output;
    if (!direct) {
      const model::Weight* weight = written == BP_NONE ? graph.weight_of(value) : nullptr;
      if (written == BP_NONE && !weight)
        return {BP_INTERNAL, "output '" + graph.values[value].name + "' is made by no island"};
      copies_.push_back({new_edge(value), written, weight});
    }
    output_edges_.push_back(direct ? written : copies_.back().edge);
    edges_[output_edges_.back()].output = true;
  }
  return {};
}

// ---- binding --------------------------------------------------------------------------------------------------------

std::string Exec::slot_name(uint32_t slot) const {
  const model::Graph& graph = session_->model().graph;
  const bool is_output = slot >= BP_SLOT_OUTPUT;
  const auto& values = is_output ? graph.outputs : graph.inputs;
  return (is_output ? "output '" : "input '") + graph.values[values[is_output ? slot - BP_SLOT_OUTPUT : slot]].name + "'";
}

Result<Edge*> Exec::bound_edge(uint32_t slot) {
  if (busy_.load(std::memory_order_acquire)) return Status(BP_BUSY, "a run is in flight: wait for it before binding");
  const bool is_output = slot >= BP_SLOT_OUTPUT;
  const auto& edges = is_output ? output_edges_ : input_edges_;
  const uint32_t index = is_output ? slot - BP_SLOT_OUTPUT : slot;
  if (index >= edges.size())
    return Status(BP_NOT_FOUND, "the model has " + std::to_string(edges.size()) + (is_output ? " outputs" : " inputs") +
                                    ", there is no slot " + std::to_string(index));
  return &edges_[edges[index]];
}

Status Exec::check(const Edge& edge, bp_dtype_t dtype, uint32_t rank, const int64_t* extents) const {
  const model::Graph& graph = session_->model().graph;
  const model::Type& type = graph.values[edge.value].type;
  if (type.dtype && dtype != type.dtype)
    return {BP_TYPE_MISMATCH, "expects " + std::string(ops::dtype_name(type.dtype)) + ", got " + std::string(ops::dtype_name(dtype))};
  if (rank > BP_MAX_RANK || (rank && !extents)) return {BP_INVALID_ARGUMENT, "rank or extents are not valid"};
  bool fits = type.rank < 0 || static_cast<uint32_t>(type.rank) == rank;
  for (uint32_t i = 0; i < rank; ++i) {
    if (extents[i] < 0) return {BP_INVALID_ARGUMENT, "extents " + format(rank, extents) + " are not all numbers"};
    if (fits && type.rank >= 0 && type.dims[i].extent >= 0 && type.dims[i].extent != extents[i]) fits = false;
  }
  if (!fits) return {BP_TYPE_MISMATCH, "expects " + format(graph, type) + ", got " + format(rank, extents)};
  return {};
}

Status Exec::bind(uint32_t slot, const bp_tensor_t& tensor) {
  BP_ASSIGN(Edge * edge, bound_edge(slot));
  const std::string name = slot_name(slot);
  if (edge->kind != BP_KIND_TENSOR) return {BP_TYPE_MISMATCH, name + " is no tensor: use bp_exec_bind_container"};
  if (tensor.layout != BP_LAYOUT_DENSE) return {BP_UNSUPPORTED, name + ": only dense row-major tensors can be bound"};
  if (tensor.buffer.memory) return {BP_UNSUPPORTED, name + ": only host memory can be bound; copy it with bp_memory_copy"};
  BP_TRY(check(*edge, tensor.dtype, tensor.rank, tensor.extents).context(name));
  const uint64_t bytes = dense_bytes(tensor.dtype, tensor.rank, tensor.extents);
  if (bytes > tensor.buffer.bytes)
    return {BP_BUFFER_TOO_SMALL, name + " needs " + std::to_string(bytes) + " bytes, its buffer has " + std::to_string(tensor.buffer.bytes)};
  if (tensor.buffer.bytes && !tensor.buffer.address) return {BP_INVALID_ARGUMENT, name + ": buffer.address is NULL"};
  edge->data = tensor.buffer.address ? static_cast<char*>(tensor.buffer.address) + tensor.buffer.offset : nullptr;
  edge->capacity = tensor.buffer.bytes;
  edge->user = true;
  edge->known = true;
  edge->dtype = tensor.dtype;
  edge->extents.assign(tensor.extents, tensor.extents + tensor.rank);
  edge->bytes = edge->dtype == BP_DTYPE_STRING ? edge->capacity : bytes;
  planned_ = false;
  return {};
}

Status Exec::bind_container(uint32_t slot, bp_container_t* container) {
  BP_ASSIGN(Edge * edge, bound_edge(slot));
  if (edge->kind == BP_KIND_TENSOR) return {BP_TYPE_MISMATCH, slot_name(slot) + " is a tensor: use bp_exec_bind"};
  if (!container) return {BP_INVALID_ARGUMENT, slot_name(slot) + ": the container is NULL"};
  if (edge->owns_container) delete edge->container;
  edge->owns_container = false;
  edge->container = container;
  edge->known = true;
  planned_ = false;
  return {};
}

Status Exec::extents(uint32_t slot, uint32_t rank, const int64_t* extents) {
  BP_ASSIGN(Edge * edge, bound_edge(slot));
  const std::string name = slot_name(slot);
  if (!edge->user || !edge->known) return {BP_BAD_STATE, name + " is not bound: call bp_exec_bind first"};
  BP_TRY(check(*edge, edge->dtype, rank, extents).context(name));
  const uint64_t bytes = dense_bytes(edge->dtype, rank, extents);
  if (bytes > edge->capacity)
    return {BP_BUFFER_TOO_SMALL, name + " needs " + std::to_string(bytes) + " bytes, its buffer has " + std::to_string(edge->capacity)};
  if (std::ranges::equal(edge->extents, std::span(extents, rank))) return {};
  edge->extents.assign(extents, extents + rank);
  edge->bytes = edge->dtype == BP_DTYPE_STRING ? edge->capacity : bytes;
  planned_ = false;
  return {};
}

// ---- planning -------------------------------------------------------------------------------------------------------

Status Exec::check_symbols() const {
  const model::Graph& graph = session_->model().graph;
  std::vector<std::pair<int64_t, uint32_t>> seen(graph.symbols.size(), {-1, 0});  // extent, input
  for (uint32_t i = 0; i < input_edges_.size(); ++i) {
    const Edge& edge = edges_[input_edges_[i]];
    if (!edge.known)
      return {BP_BAD_STATE, slot_name(i) + " is not bound: call bp_exec_bind" + (edge.kind == BP_KIND_TENSOR ? "" : "_container")};
    const model::Type& type = graph.values[edge.value].type;
    for (size_t d = 0; edge.kind == BP_KIND_TENSOR && d < type.dims.size(); ++d) {
      const uint32_t symbol = type.dims[d].extent < 0 ? type.dims[d].symbol : BP_NONE;
      if (symbol >= seen.size()) continue;
      if (seen[symbol].first >= 0 && seen[symbol].first != edge.extents[d])
        return {BP_TYPE_MISMATCH, slot_name(i) + ": dimension '" + graph.symbols[symbol].name + "' is " +
                                      std::to_string(edge.extents[d]) + ", but " + slot_name(seen[symbol].second) + " has " +
                                      std::to_string(seen[symbol].first)};
      seen[symbol] = {edge.extents[d], i};
    }
  }
  return {};
}

Status Exec::shape_outputs(Step& step) {
  const Program& program = *step.program;
  const bp_graph_t& graph = *program.view->abi();
  std::vector<bp_tensor_t> inputs;
  for (uint32_t o = 0; o < step.outputs.size(); ++o) {
    Edge& edge = edges_[step.outputs[o]];
    if (edge.kind != BP_KIND_TENSOR) continue;
    const bp_type_t& type = *bp_graph_type(&graph, bp_graph_value(&graph, graph.outputs[o])->type);
    bool numbers = type.rank >= 0;
    for (int32_t d = 0; numbers && d < type.rank; ++d) numbers = graph.dims[type.first_dim + d].extent >= 0;
    std::vector<int64_t> extents;
    if (numbers) {
      for (int32_t d = 0; d < type.rank; ++d) extents.push_back(graph.dims[type.first_dim + d].extent);
    } else if (program.info.shapes != BP_SHAPES_COMPUTED || !program.plugin->program->output_extents) {
      edge.known = edge.user && edge.output;
      continue;  // the program asks for its memory during the run
    } else {
      if (inputs.empty())
        for (uint32_t i : step.inputs) inputs.push_back(edges_[i].tensor());
      uint32_t rank = 0;
      extents.resize(BP_MAX_RANK);
      PluginError error;
      BP_TRY(error.status(program.plugin->program->output_extents(program.handle, inputs.data(), static_cast<uint32_t>(inputs.size()),
                                                                  sizeof(bp_tensor_t), o, &rank, extents.data(), error.get()),
                          "device '" + program.device->name() + "'"));
      if (rank > BP_MAX_RANK) return {BP_INTERNAL, "device '" + program.device->name() + "' tells a rank of " + std::to_string(rank)};
      extents.resize(rank);
    }
    edge.extents = std::move(extents);
    edge.bytes = dense_bytes(edge.dtype, static_cast<uint32_t>(edge.extents.size()), edge.extents.data());
    edge.known = edge.dtype != BP_DTYPE_STRING;
    if (edge.bytes == UINT64_MAX)
      return {BP_RESOURCE_EXHAUSTED, "value '" + session_->model().graph.values[edge.value].name + "' of extents " +
                                         format(static_cast<uint32_t>(edge.extents.size()), edge.extents.data()) + " is larger than memory"};
    if (edge.user && edge.known && edge.bytes > edge.capacity)
      return {BP_BUFFER_TOO_SMALL, "output '" + session_->model().graph.values[edge.value].name + "' needs " +
                                       std::to_string(edge.bytes) + " bytes, the bound buffer has " + std::to_string(edge.capacity)};
  }
  return {};
}

Status Exec::give_buffer(Edge& edge) {
  if (!edge.block.reserve(session_->environment().services(), std::max<uint64_t>(edge.bytes, 1)))
    return {BP_RESOURCE_EXHAUSTED, "no memory for the " + std::to_string(edge.bytes) + " bytes of value '" +
                                       session_->model().graph.values[edge.value].name + "'"};
  edge.data = edge.block.data();
  edge.capacity = edge.block.capacity();
  return {};
}

Status Exec::place_buffers() {
  std::vector<Lifetime> lifetimes;
  std::vector<uint32_t> shared;
  for (uint32_t i = 0; i < edges_.size(); ++i) {
    Edge& edge = edges_[i];
    if (edge.user || edge.kind != BP_KIND_TENSOR || !edge.known || edge.first == BP_NONE) continue;
    if (edge.output) {
      BP_TRY(give_buffer(edge));
      continue;
    }
    lifetimes.push_back({edge.bytes, edge.first, edge.last, 0});
    shared.push_back(i);
  }
  const uint64_t total = plan_memory(lifetimes, 64);
  if (total && !arena_.reserve(session_->environment().services(), total))
    return {BP_RESOURCE_EXHAUSTED, "no memory for the " + std::to_string(total) + " bytes between islands"};
  for (size_t k = 0; k < shared.size(); ++k) {
    edges_[shared[k]].data = static_cast<char*>(arena_.data()) + lifetimes[k].offset;
    edges_[shared[k]].capacity = lifetimes[k].bytes;
  }
  return {};
}

Status Exec::bind_step(Step& step) {
  const bp_instance_api_t& api = *step.program->plugin->instance;
  const auto bind_one = [&](uint32_t slot, Edge& edge) -> Status {
    bp_tensor_t tensor = edge.tensor();
    bp_binding_t binding{};
    binding.size = sizeof binding;
    binding.slot = slot;
    binding.tensor = edge.kind == BP_KIND_TENSOR ? &tensor : nullptr;
    binding.container = edge.container;
    PluginError error;
    return error.status(api.bind(step.instance, &binding, error.get()), "device '" + step.program->device->name() + "'");
  };
  for (uint32_t i = 0; i < step.inputs.size(); ++i) BP_TRY(bind_one(i, edges_[step.inputs[i]]));
  for (uint32_t o = 0; o < step.outputs.size(); ++o) {
    Edge& edge = edges_[step.outputs[o]];
    if (edge.kind != BP_KIND_TENSOR || edge.known) BP_TRY(bind_one(BP_SLOT_OUTPUT + o, edge));
  }
  return {};
}

Status Exec::plan() {
  BP_TRY(check_symbols());
  for (Step& step : steps_) {
    for (uint32_t o : step.outputs) edges_[o].known = false;
    step.late = std::ranges::any_of(step.inputs, [&](uint32_t i) { return !edges_[i].known && edges_[i].kind == BP_KIND_TENSOR; });
    if (step.late) continue;
    BP_TRY(shape_outputs(step));
  }
  BP_TRY(place_buffers());
  for (Step& step : steps_)
    if (!step.late) BP_TRY(bind_step(step));
  planned_ = true;
  return {};
}

// ---- running --------------------------------------------------------------------------------------------------------

namespace {

// What bp_run_t's callbacks of one step reach.
struct StepCall {
  std::vector<Edge>& edges;
  const std::vector<uint32_t>& outputs;
  Services& services;
  std::atomic<uint32_t> ended{0};
  bp_status_t status = BP_OK;
  Status detail;

  static bp_status_t BP_CALL output(void* self, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                                    bp_tensor_t* out) {
    auto& call = *static_cast<StepCall*>(self);
    const uint32_t index = slot - BP_SLOT_OUTPUT;
    if (slot < BP_SLOT_OUTPUT || index >= call.outputs.size() || rank > BP_MAX_RANK || (rank && !extents) || !out)
      return BP_INVALID_ARGUMENT;
    Edge& edge = call.edges[call.outputs[index]];
    for (uint32_t i = 0; i < rank; ++i)
      if (extents[i] < 0) return BP_INVALID_ARGUMENT;
    edge.extents.assign(extents, extents + rank);
    edge.bytes = edge.dtype == BP_DTYPE_STRING ? bytes : dense_bytes(edge.dtype, rank, extents);
    if (edge.bytes == UINT64_MAX) return BP_RESOURCE_EXHAUSTED;
    if (edge.user) {
      if (edge.bytes > edge.capacity) return BP_BUFFER_TOO_SMALL;
    } else {
      if (!edge.block.reserve(call.services, std::max<uint64_t>(edge.bytes, 1))) return BP_RESOURCE_EXHAUSTED;
      edge.data = edge.block.data();
      edge.capacity = edge.block.capacity();
    }
    edge.known = true;
    return abi::write(edge.tensor(), out, "out_tensor").code();
  }

  static void BP_CALL done(void* self, bp_status_t status, const bp_error_t* error) {
    auto& call = *static_cast<StepCall*>(self);
    call.status = status;
    if (status != BP_OK && error && error->size >= sizeof *error)
      call.detail = Status(status, error->text ? std::string(error->text, std::min(error->text_size, error->text_capacity)) : "")
                        .with_node(error->node)
                        .with_vendor_code(error->vendor_code)
                        .with_flags(error->flags);
    call.ended.store(1, std::memory_order_release);
    call.ended.notify_one();
  }
};

}  // namespace

Status Exec::run_step(Step& step, const bp_run_t& options) {
  if (cancelled(options.cancel)) return {BP_CANCELLED, "the run was cancelled"};
  if (passed(options.deadline)) return {BP_TIMED_OUT, "the deadline passed"};
  if (step.late) {
    BP_TRY(shape_outputs(step));
    for (uint32_t o : step.outputs)
      if (Edge& edge = edges_[o]; edge.known && !edge.user && edge.kind == BP_KIND_TENSOR) BP_TRY(give_buffer(edge));
    BP_TRY(bind_step(step));
  }
  const Program& program = *step.program;
  StepCall call{edges_, step.outputs, session_->environment().services(), {}, BP_OK, {}};
  bp_run_t run{};
  run.size = sizeof run;
  run.deadline = options.deadline;
  run.cancel = options.cancel;
  run.priority = options.priority;
  run.trace_id = options.trace_id;
  run.self = &call;
  run.output = StepCall::output;
  const bool synchronous = program.device->info().flags & BP_DEVICE_SYNCHRONOUS;
  if (!synchronous) run.done = StepCall::done;

  Trace& trace = session_->environment().services().trace();
  const uint64_t begin = trace.active() ? monotonic_now() : 0;
  PluginError error;
  Status status = error.status(program.plugin->instance->run(step.instance, &run, error.get()), "device '" + program.device->name() + "'");
  if (status.ok() && !synchronous) {
    while (!call.ended.load(std::memory_order_acquire)) call.ended.wait(0);
    if (call.status != BP_OK)
      status = call.detail.ok() ? Status(call.status, "device '" + program.device->name() + "' failed without a text")
                                : std::move(call.detail).context("device '" + program.device->name() + "'");
  }
  if (begin) {
    const uint32_t island = static_cast<uint32_t>(&step - steps_.data());
    const std::string name = "island " + std::to_string(island);
    bp_span_t span{};
    span.size = sizeof span;
    span.kind = BP_SPAN_COMPUTE;
    span.begin = begin;
    span.end = monotonic_now();
    span.trace_id = options.trace_id;
    span.node = BP_NO_NODE;
    span.device = program.device->index();
    span.name = abi::text(name);
    trace.add(span);
  }
  if (status.ok()) return {};
  const std::string label = label_of(session_->model().graph, status.node());
  return label.empty() ? std::move(status) : std::move(status).context(label);
}

Status Exec::finish_copies() {
  for (const Copy& copy : copies_) {
    Edge& to = edges_[copy.edge];
    if (to.kind != BP_KIND_TENSOR) {
      const bp_container_t* from = copy.from_edge == BP_NONE ? nullptr : edges_[copy.from_edge].container;
      if (!from) return {BP_INTERNAL, "a constant that is no tensor cannot be an output"};
      BP_TRY(copy_container(*from, *to.container));
      continue;
    }
    const void* data = copy.weight ? copy.weight->data : edges_[copy.from_edge].data;
    to.extents = copy.weight ? copy.weight->dims : edges_[copy.from_edge].extents;
    to.bytes = copy.weight ? copy.weight->bytes : edges_[copy.from_edge].bytes;
    to.dtype = copy.weight ? copy.weight->dtype : edges_[copy.from_edge].dtype;
    if (!to.user) BP_TRY(give_buffer(to));
    if (to.bytes > to.capacity)
      return {BP_BUFFER_TOO_SMALL, "output '" + session_->model().graph.values[to.value].name + "' needs " +
                                       std::to_string(to.bytes) + " bytes, the bound buffer has " + std::to_string(to.capacity)};
    if (to.bytes) std::memcpy(to.data, data, to.bytes);
  }
  return {};
}

Status Exec::run_steps(const bp_run_t& options) {
  if (!planned_) BP_TRY(plan());
  for (Step& step : steps_) BP_TRY(run_step(step, options));
  BP_TRY(finish_copies());
  ran_ = true;
  return {};
}

Status Exec::execute(const bp_run_t& options) {
  Status status;
  for (uint32_t i = 0; status.ok() && i < options.wait_count; ++i) {
    const bp_point_t& point = options.waits[i];
    const bp_status_t code =
        point.semaphore->wait(point.value, options.deadline ? options.deadline : BP_FOREVER, options.cancel);
    if (code != BP_OK) status = Status(code, "while waiting for a semaphore to reach " + std::to_string(point.value));
  }
  ran_ = false;
  if (status.ok()) status = run_steps(options);
  return status;
}

namespace {

// The end of a run, however it came: `done` first, then the signals.
void announce(const bp_run_t& options, const Status& status) {
  if (options.done) {
    std::string text(status.text());
    bp_error_t error{};
    error.size = sizeof error;
    error.text = text.data();
    error.text_capacity = text.size();
    error.node = BP_NO_NODE;
    status.write(&error);
    options.done(options.self, status.code(), &error);
  }
  for (uint32_t i = 0; i < options.signal_count; ++i)
    options.signals[i].semaphore->signal(options.signals[i].value, status.code());
}

Result<bp_run_t> read_run(const bp_run_t* run) {
  if (!run) {
    bp_run_t none{};
    none.size = sizeof none;
    return none;
  }
  BP_ASSIGN(bp_run_t options, abi::read(run, "run"));
  if (options.stream || options.output) return Status(BP_INVALID_ARGUMENT, "run.stream and run.output must be NULL here");
  const auto all_host = [](const bp_point_t* points, uint32_t count) {
    return !count || (points && std::all_of(points, points + count, [](const bp_point_t& p) { return p.semaphore && !p.native; }));
  };
  if (!all_host(options.waits, options.wait_count) || !all_host(options.signals, options.signal_count))
    return Status(BP_INVALID_ARGUMENT, "run.waits and run.signals take semaphores of bp_semaphore_create");
  return options;
}

}  // namespace

Status Exec::run(const bp_run_t* run) {
  BP_ASSIGN(const bp_run_t options, read_run(run));
  if (busy_.exchange(true, std::memory_order_acquire)) return {BP_BUSY, "a run of this exec is in flight: use another exec"};
  Status status = execute(options);
  announce(options, status);
  busy_.store(false, std::memory_order_release);
  busy_.notify_all();
  return status;
}

Status Exec::submit(const bp_run_t* run) {
  BP_ASSIGN(const bp_run_t options, read_run(run));
  if (busy_.exchange(true, std::memory_order_acquire)) return {BP_BUSY, "a run of this exec is in flight: use another exec"};
  if (!worker_) worker_ = std::make_unique<Worker>();
  worker_->post([this, options] {
    const Status status = execute(options);
    announce(options, status);
    busy_.store(false, std::memory_order_release);
    busy_.notify_all();
  });
  return {};
}

Status Exec::output(uint32_t index, bp_tensor_t& out) {
  BP_ASSIGN(Edge * edge, bound_edge(BP_SLOT_OUTPUT + index));
  if (edge->kind != BP_KIND_TENSOR)
    return {BP_TYPE_MISMATCH, slot_name(BP_SLOT_OUTPUT + index) + " is no tensor: use bp_exec_output_container"};
  if (!ran_) return {BP_BAD_STATE, "there is no result: call bp_exec_run first"};
  bp_tensor_t tensor = edge->tensor();
  tensor.buffer.bytes = edge->bytes;
  return abi::write(tensor, &out, "out_tensor");
}

Status Exec::output_container(uint32_t index, bp_container_t*& out) {
  BP_ASSIGN(Edge * edge, bound_edge(BP_SLOT_OUTPUT + index));
  if (edge->kind == BP_KIND_TENSOR) return {BP_TYPE_MISMATCH, slot_name(BP_SLOT_OUTPUT + index) + " is a tensor: use bp_exec_output"};
  if (!ran_) return {BP_BAD_STATE, "there is no result: call bp_exec_run first"};
  out = edge->container;
  return {};
}

}  // namespace backplane

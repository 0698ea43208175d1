// SPDX-License-Identifier: Apache-2.0
#include "run/plan.h"

#include <algorithm>

#include "run/device_status.h"
#include "run/memory_plan.h"

namespace backplane {
namespace {

// The tasks that use an edge's bytes in one memory, with those that look at them there from elsewhere.
struct Use {
  uint32_t first = UINT32_MAX, last = 0;
  std::vector<uint32_t> tasks;
};

Use use_of(const Edge& edge, uint32_t memory) {
  Use use;
  for (const Replica& replica : edge.replicas) {
    if (replica.memory != memory && !(memory == 0 && replica.shared)) continue;
    if (replica.writer != BP_NONE) use.tasks.push_back(replica.writer);
    use.tasks.insert(use.tasks.end(), replica.readers.begin(), replica.readers.end());
  }
  for (uint32_t task : use.tasks) {
    use.first = std::min(use.first, task);
    use.last = std::max(use.last, task);
  }
  return use;
}

bool same(const bp_buffer_t& a, const bp_buffer_t& b) {
  return a.memory == b.memory && a.address == b.address && a.offset == b.offset && a.bytes == b.bytes;
}

uint64_t begin(const bp_buffer_t& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.address) + buffer.offset;
}
uint64_t end(const bp_buffer_t& buffer) {
  return begin(buffer) + buffer.bytes;
}

bool overlap(const bp_buffer_t& a, const bp_buffer_t& b) {
  return a.memory == b.memory && a.bytes && b.bytes && begin(a) < end(b) && begin(b) < end(a);
}
bool covers(const bp_buffer_t& a, const bp_buffer_t& b) {
  return a.memory == b.memory && begin(a) <= begin(b) && end(b) <= end(a);
}

uint32_t rule_of(const bp_program_info_t& info, uint32_t input, uint32_t output) {
  for (uint32_t i = 0; info.inplace && i < info.inplace_count; ++i)
    if (info.inplace[i].input == input && info.inplace[i].output == output) return info.inplace[i].rule;
  return BP_DONATE_NEVER;
}

}  // namespace

Plan::Plan(const Session& session, Route& route)
    : session_(session),
      route_(route),
      arenas_(route.memories.size()),
      views_(route.memories.size()),
      in_arena_(route.memories.size()) {}

const std::string& Plan::name_of(const Edge& edge) const {
  return session_.model().graph.values[edge.value].name;
}

Status Plan::make() {
  for (Edge& edge : route_.edges)
    for (Replica& replica : edge.replicas) replica.shared = false;
  BP_TRY(shape_all());
  BP_TRY(place_buffers());
  for (Step& step : route_.steps)
    if (!step.late) BP_TRY(bind(step));
  after_.clear();
  for (const Task& task : route_.tasks) after_.push_back(task.after);
  bool is_chain = true;
  for (uint32_t t = 1; t < after_.size() && is_chain; ++t)
    is_chain = std::ranges::find(after_[t], t - 1) != after_[t].end();
  if (!is_chain) order_buffers();
  BP_TRY(check_in_place());
  make_tasks();
  return {};
}

Status Plan::shape_all() {
  constexpr size_t kMaxShapes = 64;  // that are remembered
  std::vector<int64_t> key;
  for (uint32_t input : route_.inputs) {
    const std::vector<int64_t>& extents = route_.edges[input].extents;
    key.push_back(static_cast<int64_t>(extents.size()));
    key.insert(key.end(), extents.begin(), extents.end());
  }
  const auto found = shapes_.find(key);
  for (size_t i = 0; i < route_.edges.size(); ++i) {
    Edge& edge = route_.edges[i];
    if (edge.producer == BP_NONE) continue;
    edge.known = edge.kind != BP_KIND_TENSOR;
    if (found != shapes_.end() && found->second[i]) BP_TRY(set_extents(edge, *found->second[i]));
  }
  for (Step& step : route_.steps) {
    step.late = std::ranges::any_of(step.inputs, [&](const Place& p) { return !route_.edges[p.edge].known; });
    if (!step.late && found == shapes_.end()) BP_TRY(shape_outputs(step));
  }
  for (Edge& edge : route_.edges) edge.late = edge.producer != BP_NONE && !edge.known;
  if (found != shapes_.end()) return {};
  if (shapes_.size() >= kMaxShapes) shapes_.clear();
  auto& all = shapes_[std::move(key)];
  for (const Edge& edge : route_.edges) {
    const bool tells = edge.producer != BP_NONE && edge.kind == BP_KIND_TENSOR && edge.known;
    all.push_back(tells ? std::optional(edge.extents) : std::nullopt);
  }
  return {};
}

Status Plan::set_extents(Edge& edge, std::vector<int64_t> extents) const {
  edge.bytes = dense_bytes(edge.dtype, static_cast<uint32_t>(extents.size()), extents.data());
  edge.extents = std::move(extents);
  edge.known = edge.dtype != BP_DTYPE_STRING;
  if (edge.bytes == UINT64_MAX) return {BP_RESOURCE_EXHAUSTED, "value '" + name_of(edge) + "' is larger than memory"};
  if (edge.bound() && edge.known && edge.bytes > edge.replicas[edge.home].buffer.bytes)
    return {BP_BUFFER_TOO_SMALL, "output '" + name_of(edge) + "' needs " + std::to_string(edge.bytes) +
                                     " bytes, the bound buffer has " +
                                     std::to_string(edge.replicas[edge.home].buffer.bytes)};
  return {};
}

Status Plan::settle(Step& step) {
  BP_TRY(shape_outputs(step));
  for (const Place& place : step.outputs) {
    Edge& edge = route_.edges[place.edge];
    if (edge.known && place.replica != BP_NONE && !edge.replicas[place.replica].user)
      BP_TRY(give_buffer(edge, edge.replicas[place.replica]));
  }
  return bind(step);
}

Result<std::vector<bp_shape_t>> Plan::ask_shapes(const Step& step) const {
  const Program& program = *step.program;
  std::vector<bp_tensor_t> inputs;  // no data: what is planned holds for other data too
  for (const Place& place : step.inputs) inputs.push_back(route_.edges[place.edge].tensor(BP_NONE));
  std::vector<bp_shape_t> shapes(step.outputs.size(), bp_shape_t{BP_NONE, 0, {}});
  bp_shape_query_t query{};
  query.size = sizeof query;
  query.inputs = inputs.data();
  query.input_count = static_cast<uint32_t>(inputs.size());
  query.input_stride = sizeof(bp_tensor_t);
  query.output_stride = sizeof(bp_shape_t);
  PluginError error;
  BP_TRY(error.status(program.plugin->program->output_extents(program.handle, &query, shapes.data(), error.get()),
                      "device '" + program.device->name() + "'"));
  return shapes;
}

Status Plan::shape_outputs(Step& step) {
  const Program& program = *step.program;
  const bp_graph_t& graph = *program.view->abi();
  const std::string device = "device '" + program.device->name() + "'";
  std::vector<bp_shape_t> shapes;
  for (uint32_t o = 0; o < step.outputs.size(); ++o) {
    Edge& edge = route_.edges[step.outputs[o].edge];
    if (edge.kind != BP_KIND_TENSOR) continue;
    const bp_type_t& type = *bp_graph_type(&graph, bp_graph_value(&graph, graph.outputs[o])->type);
    bool numbers = type.rank >= 0;
    for (int32_t d = 0; numbers && d < type.rank; ++d) numbers = graph.dims[type.first_dim + d].extent >= 0;
    std::vector<int64_t> extents;
    if (numbers) {
      for (int32_t d = 0; d < type.rank; ++d) extents.push_back(graph.dims[type.first_dim + d].extent);
    } else if (program.info.shapes != BP_SHAPES_COMPUTED || !program.plugin->program->output_extents) {
      continue;  // the program asks for its memory during the run
    } else {
      if (shapes.empty()) {
        BP_ASSIGN(shapes, ask_shapes(step));
      }
      const bp_shape_t& shape = shapes[o];
      if (shape.rank == BP_NONE) continue;  // as above
      if (shape.rank > BP_MAX_RANK) return {BP_INTERNAL, device + " reports a rank of " + std::to_string(shape.rank)};
      extents.assign(shape.extents, shape.extents + shape.rank);
    }
    BP_TRY(set_extents(edge, std::move(extents)));
  }
  return {};
}

// ---- buffers --------------------------------------------------------------------------------------------------------

Status Plan::give_buffer(Edge& edge, Replica& replica) {
  replica.shared = false;
  if (Status status = replica.block.reserve(*route_.memories[replica.memory], edge.bytes); !status.ok())
    return std::move(status).context("value '" + name_of(edge) + "'");
  replica.buffer = replica.block.buffer();
  replica.serial = replica.block.serial();
  return {};
}

Status Plan::place_buffers() {
  for (auto& edges : in_arena_) edges.clear();
  for (uint32_t i = 0; i < route_.edges.size(); ++i) {
    Edge& edge = route_.edges[i];
    if (edge.kind != BP_KIND_TENSOR || !edge.known) continue;
    const bool in_host = edge.in(0) != BP_NONE;
    for (uint32_t r = 0; r < edge.replicas.size(); ++r) {
      Replica& replica = edge.replicas[r];
      if (replica.user) continue;
      replica.shared = in_host && edge.bytes && route_.memories[replica.memory]->shares_host();
      if (replica.shared) continue;
      if (r == edge.home)
        BP_TRY(give_buffer(edge, replica));
      else
        in_arena_[replica.memory].push_back(i);
    }
  }
  for (uint32_t memory = 0; memory < in_arena_.size(); ++memory) BP_TRY(place_in(memory));
  for (Edge& edge : route_.edges)
    if (edge.known) BP_TRY(share(edge));
  return {};
}

Status Plan::place_in(uint32_t memory) {
  std::vector<Lifetime> lifetimes;
  std::vector<std::pair<uint32_t, uint32_t>> order;  // first task, edge
  for (uint32_t index : in_arena_[memory]) order.emplace_back(use_of(route_.edges[index], memory).first, index);
  std::ranges::sort(order);
  for (size_t i = 0; i < order.size(); ++i) {
    in_arena_[memory][i] = order[i].second;
    const Edge& edge = route_.edges[order[i].second];
    lifetimes.push_back({edge.bytes, order[i].first, use_of(edge, memory).last, 0});
  }
  const Memory& where = *route_.memories[memory];
  const uint64_t total = plan_memory(lifetimes, where.alignment());
  if (total) BP_TRY(arenas_[memory].reserve(where, total));
  for (size_t i = 0; i < order.size(); ++i) {
    Edge& edge = route_.edges[order[i].second];
    Replica& replica = edge.replicas[edge.in(memory)];
    replica.buffer = part(arenas_[memory].buffer(), lifetimes[i].offset, lifetimes[i].bytes);
    replica.serial = arenas_[memory].serial();
  }
  return {};
}

// Lets devices look at the edge's bytes in host memory, or gives them their own where they cannot.
Status Plan::share(Edge& edge) {
  for (Replica& replica : edge.replicas) {
    if (!replica.shared) continue;
    const Replica& host = edge.replicas[edge.in(0)];
    const Memory& memory = *route_.memories[replica.memory];
    const bp_buffer_t& arena = arenas_[0].buffer();
    const bool in_arena = !host.user && &host != (edge.home == BP_NONE ? nullptr : &edge.replicas[edge.home]);
    Block& import = in_arena ? views_[replica.memory] : replica.block;
    const bp_buffer_t& whole = in_arena ? arena : host.buffer;
    const Status status = import.import(memory, host_address(whole), whole.bytes);
    if (!status.ok()) {
      if (BP_STATUS_CLASS(status.code()) != BP_CLASS_FIX_CALL) return status;
      BP_TRY(give_buffer(edge, replica));
      continue;
    }
    const auto offset = in_arena ? static_cast<uint64_t>(host_address(host.buffer) - host_address(arena)) : 0;
    replica.buffer = part(import.buffer(), offset, host.buffer.bytes);
    replica.serial = import.serial();
  }
  return {};
}

// ---- binding --------------------------------------------------------------------------------------------------------

// Islands of one device run one after the other: they share what is lost between runs.
Status Plan::bind_scratch(Step& step) {
  const uint64_t bytes = step.program->info.scratch_bytes;
  if (bytes == 0) return {};
  Block& block = scratch_[step.program->device];
  uint64_t most = 0;
  for (const Step& other : route_.steps)
    if (other.program->device == step.program->device) most = std::max(most, other.program->info.scratch_bytes);
  BP_TRY(block.reserve(*route_.memories[step.memory], most));
  if (step.scratch == block.serial()) return {};
  const auto extent = static_cast<int64_t>(bytes);
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = BP_DTYPE_UINT8;
  tensor.rank = 1;
  tensor.extents = &extent;
  tensor.buffer = part(block.buffer(), 0, bytes);
  bp_binding_t binding{};
  binding.size = sizeof binding;
  binding.slot = BP_SLOT_SCRATCH;
  binding.tensor = &tensor;
  PluginError error;
  BP_TRY(device_status(*step.program->device, error,
                       step.program->plugin->instance->bind(step.instance, &binding, error.get())));
  step.scratch = block.serial();
  return {};
}

Status Plan::bind(Step& step) {
  BP_TRY(bind_scratch(step));
  const uint32_t inputs = static_cast<uint32_t>(step.inputs.size());
  for (uint32_t i = 0; i < inputs; ++i) BP_TRY(bind_slot(step, i, step.inputs[i], step.bound[i]));
  for (uint32_t o = 0; o < step.outputs.size(); ++o)
    if (route_.edges[step.outputs[o].edge].known)
      BP_TRY(bind_slot(step, BP_SLOT_OUTPUT + o, step.outputs[o], step.bound[inputs + o]));
  return {};
}

Status Plan::bind_slot(Step& step, uint32_t slot, const Place& place, Step::Bound& bound) {
  const bp_instance_api_t& api = *step.program->plugin->instance;
  const Edge& edge = route_.edges[place.edge];
  const Device& device = *step.program->device;
  bp_tensor_t tensor = edge.tensor(place.replica);
  const uint64_t serial = place.replica == BP_NONE ? 0 : edge.replicas[place.replica].serial;
  PluginError error;
  if (bound.is && edge.kind == BP_KIND_TENSOR && bound.serial == serial && same(bound.buffer, tensor.buffer)) {
    if (bound.extents == edge.extents) return {};
    if (api.extents) {
      bound.is = false;
      const bp_slot_extents_t extents{slot, tensor.rank, tensor.extents};
      BP_TRY(device_status(device, error, api.extents(step.instance, &extents, 1, sizeof extents, error.get())));
      bound.extents = edge.extents;
      bound.is = true;
      return {};
    }
  }
  bp_binding_t binding{};
  binding.size = sizeof binding;
  binding.slot = slot;
  binding.tensor = edge.kind == BP_KIND_TENSOR ? &tensor : nullptr;
  binding.container = edge.container;
  bound.is = false;
  BP_TRY(device_status(device, error, api.bind(step.instance, &binding, error.get())));
  bound = {tensor.buffer, serial, edge.extents, true};
  return {};
}

// ---- order ----------------------------------------------------------------------------------------------------------

void Plan::put_after(uint32_t before, uint32_t task) {
  std::vector<uint32_t>& known = after_[task];
  if (std::ranges::find(known, before) == known.end()) known.push_back(before);
}

// Whether its extents are known only when the tasks before it have ended.
bool Plan::is_late(const Task& task) const {
  return task.step != BP_NONE ? route_.steps[task.step].late : route_.edges[route_.transfers[task.transfer].edge].late;
}

// What the host has to do between tasks: nothing where one follows on the other in a stream, or waits for its mark.
void Plan::make_issues() {
  issues_.assign(route_.tasks.size(), {});
  std::vector<uint8_t> followed(route_.tasks.size());  // in its stream: the end of the last says that of those before
  for (uint32_t t = 0; t < route_.tasks.size(); ++t) {
    const Task& task = route_.tasks[t];
    Issue& issue = issues_[t];
    issue.in_stream = task.lane != BP_NONE;
    if (task.transfer != BP_NONE) {
      const Transfer& moving = route_.transfers[task.transfer];
      const std::vector<Replica>& replicas = route_.edges[moving.edge].replicas;
      if (replicas[moving.from].shared || replicas[moving.to].shared) issue.in_stream = false;  // nothing is copied
    }
    for (uint32_t before : after_[t]) {
      const Task& other = route_.tasks[before];
      Issue& earlier = issues_[before];
      if (issue.in_stream && earlier.in_stream && !is_late(task)) {
        if (other.lane == task.lane) {
          followed[before] = 1;
          continue;
        }
        if (other.mark && other.mark->of(task.lane)) {
          issue.marked_before.push_back(before);
          earlier.marks = true;
          continue;
        }
      }
      issue.host_before.push_back(before);
      if (earlier.in_stream) earlier.reports = true;
    }
  }
  for (uint32_t t = 0; t < issues_.size(); ++t)
    if (issues_[t].in_stream && !followed[t]) issues_[t].reports = true;
}

void Plan::make_tasks() {
  make_issues();
  const uint32_t count = static_cast<uint32_t>(route_.tasks.size());
  std::vector<const Device*> devices;
  for (const Step& step : route_.steps)
    if (std::ranges::find(devices, step.program->device) == devices.end()) devices.push_back(step.program->device);
  // One for each device's islands, one for copies.
  tasks_ = std::make_unique<TaskGraph>(count, static_cast<uint32_t>(devices.size()) + !route_.transfers.empty());
  for (uint32_t task = 0; task < count; ++task)
    for (uint32_t before : after_[task])
      tasks_->order(before, task,
                    std::ranges::find(issues_[task].host_before, before) == issues_[task].host_before.end());
}

// A buffer that lies where others lay is written when those are no longer used.
void Plan::order_buffers() {
  for (uint32_t memory = 0; memory < in_arena_.size(); ++memory) {
    struct Occupant {
      bp_buffer_t buffer;
      std::vector<uint32_t> tasks;
    };
    std::vector<Occupant> occupants;
    for (uint32_t index : in_arena_[memory]) {
      const Edge& edge = route_.edges[index];
      const bp_buffer_t& buffer = edge.replicas[edge.in(memory)].buffer;
      Use use = use_of(edge, memory);
      std::erase_if(occupants, [&](const Occupant& old) {
        if (!overlap(old.buffer, buffer)) return false;
        for (uint32_t task : old.tasks)
          if (task < use.first) put_after(task, use.first);
        return covers(buffer, old.buffer);
      });
      occupants.push_back({buffer, std::move(use.tasks)});
    }
  }
}

// Where the framework bound an output to the memory of an input, one island updates it in place after all others read
// it.
Status Plan::check_in_place() {
  updates_inputs_ = false;
  for (uint32_t o : route_.outputs) {
    const Edge& output = route_.edges[o];
    if (!output.bound() || output.producer == BP_NONE) continue;
    const Replica& written = output.replicas[output.home];
    for (uint32_t i : route_.inputs) {
      const Edge& input = route_.edges[i];
      if (!input.bound() || input.kind != BP_KIND_TENSOR) continue;
      const Replica& read = input.replicas[input.home];
      if (!overlap(read.buffer, written.buffer)) continue;
      updates_inputs_ = true;
      const std::string pair = "input '" + name_of(input) + "' and output '" + name_of(output) + "' share memory, but ";
      const uint32_t writer = written.writer;
      for (uint32_t task : read.readers) {
        if (task == writer) continue;
        if (task > writer)
          return {BP_UNSUPPORTED, pair + "the input is read after the output was written: bind two buffers"};
        put_after(task, writer);
      }
      if (std::ranges::find(read.readers, writer) == read.readers.end()) continue;
      const Step& step = route_.steps[output.producer];
      const auto slot = [&](const std::vector<Place>& places, uint32_t edge) {
        return static_cast<uint32_t>(std::ranges::find(places, edge, &Place::edge) - places.begin());
      };
      if (begin(read.buffer) != begin(written.buffer) ||
          rule_of(step.program->info, slot(step.inputs, i), slot(step.outputs, o)) == BP_DONATE_NEVER)
        return {BP_UNSUPPORTED,
                pair + "device '" + step.program->device->name() + "' does not update it in place: bind two buffers"};
    }
  }
  for (const Step& step : route_.steps) {
    const bp_program_info_t& info = step.program->info;
    for (uint32_t p = 0; info.inplace && p < info.inplace_count; ++p) {
      const bp_inplace_t& pair = info.inplace[p];
      if (pair.rule != BP_DONATE_MUST || pair.input >= step.inputs.size() || pair.output >= step.outputs.size())
        continue;
      const Edge& input = route_.edges[step.inputs[pair.input].edge];
      const Edge& output = route_.edges[step.outputs[pair.output].edge];
      if (!same(input.tensor(step.inputs[pair.input].replica).buffer,
                output.tensor(step.outputs[pair.output].replica).buffer))
        return {BP_UNSUPPORTED, "device '" + step.program->device->name() + "' updates '" + name_of(input) +
                                    "' in place: bind its buffer to '" + name_of(output) + "' too"};
    }
  }
  return {};
}

}  // namespace backplane

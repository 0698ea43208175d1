// SPDX-License-Identifier: Apache-2.0
#include "run/run_plan.h"

#include <algorithm>

#include "run/memory_plan.h"

namespace backplane {
namespace {

// The tasks that use a value in one memory. For host memory, this includes tasks that use an import of it.
struct Use {
  uint32_t first = UINT32_MAX, last = 0;
  std::vector<uint32_t> tasks;
};

Use use_of(const RunValue& value, const RunState::Value& state, uint32_t memory) {
  Use use;
  for (size_t r = 0; r < value.replicas.size(); ++r) {
    const Replica& replica = value.replicas[r];
    if (replica.memory != memory && !(memory == 0 && state.replicas[r].imported)) continue;
    if (replica.writer != BP_NONE) use.tasks.push_back(replica.writer);
    use.tasks.insert(use.tasks.end(), replica.readers.begin(), replica.readers.end());
  }
  for (uint32_t task : use.tasks) {
    use.first = std::min(use.first, task);
    use.last = std::max(use.last, task);
  }
  return use;
}

// The last users of each byte of a memory, while values occupy it one after another.
class Occupancy {
 public:
  // Returns the tasks that used the buffer's bytes before, with repetitions, and records that `tasks` use them now.
  std::vector<uint32_t> occupy(const bp_buffer_t& buffer, std::vector<uint32_t> tasks) {
    std::vector<uint32_t> before;
    const uint64_t first = begin_of(buffer), last = end_of(buffer);
    if (first >= last) return before;
    split_at({buffer.memory, first});
    split_at({buffer.memory, last});
    auto span = spans_.lower_bound({buffer.memory, first});
    while (span != spans_.end() && span->first < Start{buffer.memory, last}) {
      const std::vector<uint32_t>& users = users_[span->second.users];
      before.insert(before.end(), users.begin(), users.end());
      span = spans_.erase(span);
    }
    spans_[{buffer.memory, first}] = {last, users_.size()};
    users_.push_back(std::move(tasks));
    return before;
  }

 private:
  using Start = std::pair<const bp_memory_t*, uint64_t>;
  struct Span {
    uint64_t end = 0;
    size_t users = 0;  // index of users_
  };

  void split_at(Start start) {
    auto next = spans_.lower_bound(start);
    if (next == spans_.begin()) return;
    auto& [begin, span] = *std::prev(next);
    if (begin.first != start.first || span.end <= start.second) return;
    spans_.emplace_hint(next, start, span);
    span.end = start.second;
  }

  std::map<Start, Span> spans_;  // they do not overlap
  std::vector<std::vector<uint32_t>> users_;
};

// A device that works on host memory gets a copy of a value in its own memory if the value has at most this many bytes
// for each of the device's islands that read it. On PoCL, 20 islands that read the same 16 KB take 92 µs with the copy
// and 159 µs without. For 5 islands and 64 KB, the two times are equal.
constexpr uint64_t kCopiedBytesPerReader = 8 << 10;

uint32_t rule_of(const bp_program_info_t& info, uint32_t input, uint32_t output) {
  for (uint32_t i = 0; info.inplace && i < info.inplace_count; ++i)
    if (info.inplace[i].input == input && info.inplace[i].output == output) return info.inplace[i].rule;
  return BP_DONATE_NEVER;
}

}  // namespace

RunPlan::RunPlan(const RunGraph& graph, RunState& state)
    : graph_(graph),
      state_(state),
      dynamic_steps_(graph.steps.size()),
      dynamic_values_(graph.values.size()),
      in_arena_(graph.memories.size()) {}

Status RunPlan::make() {
  state_.forget_plan();
  BP_TRY(infer_extents());
  BP_TRY(place_buffers());
  after_.clear();
  for (const Task& task : graph_.tasks) after_.push_back(task.after);
  bool is_chain = true;
  for (uint32_t t = 1; t < after_.size() && is_chain; ++t)
    is_chain = std::ranges::find(after_[t], t - 1) != after_[t].end();
  if (!is_chain) order_buffers();
  BP_TRY(check_in_place());
  for (uint32_t s = 0; s < graph_.steps.size(); ++s)
    if (!dynamic_steps_[s]) BP_TRY(state_.bind(s));
  const auto remove_repetitions = [](std::vector<uint32_t>& tasks) {
    std::ranges::sort(tasks);
    tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
  };
  for (uint32_t t = 0; t < after_.size(); ++t) {
    remove_repetitions(after_[t]);
    for (uint32_t before : std::vector<uint32_t>(after_[t])) {
      if (!does_nothing(graph_.tasks[before])) continue;
      for (uint32_t earlier : after_[before])
        put_after(earlier, t);  // in place of `before`, for which the host does not wait
    }
    remove_repetitions(after_[t]);
  }
  make_tasks();
  return {};
}

// ---- extents --------------------------------------------------------------------------------------------------------

Status RunPlan::infer_extents() {
  constexpr size_t kMaxRemembered = 64;
  std::vector<int64_t> key;
  for (uint32_t input : graph_.inputs) {
    const std::vector<int64_t>& extents = state_.value(input).extents;
    key.push_back(static_cast<int64_t>(extents.size()));
    key.insert(key.end(), extents.begin(), extents.end());
  }
  const auto found = known_extents_.find(key);
  const uint32_t count = static_cast<uint32_t>(graph_.values.size());
  for (uint32_t v = 0; v < count && found != known_extents_.end(); ++v)
    if (graph_.values[v].producer != BP_NONE && found->second[v]) BP_TRY(state_.set_extents(v, *found->second[v]));
  for (uint32_t s = 0; s < graph_.steps.size(); ++s) {
    const Step& step = graph_.steps[s];
    dynamic_steps_[s] =
        std::ranges::any_of(step.inputs, [&](const ReplicaRef& input) { return !state_.value(input.value).known; });
    if (!dynamic_steps_[s] && found == known_extents_.end()) BP_TRY(infer_outputs(step));
  }
  for (uint32_t v = 0; v < count; ++v)
    dynamic_values_[v] = graph_.values[v].producer != BP_NONE && !state_.value(v).known;
  if (found != known_extents_.end()) return {};
  if (known_extents_.size() >= kMaxRemembered) known_extents_.clear();
  auto& all = known_extents_[std::move(key)];
  for (uint32_t v = 0; v < count; ++v) {
    const RunValue& value = graph_.values[v];
    const bool is_inferred = value.producer != BP_NONE && value.kind == BP_KIND_TENSOR && state_.value(v).known;
    all.push_back(is_inferred ? std::optional(state_.value(v).extents) : std::nullopt);
  }
  return {};
}

Status RunPlan::plan_dynamic_step(uint32_t number) const {
  const Step& step = graph_.steps[number];
  BP_TRY(infer_outputs(step));
  for (const ReplicaRef& output : step.outputs)
    if (output.replica != BP_NONE && state_.value(output.value).known && !state_.replica(output).user)
      BP_TRY(state_.allocate(output));
  return state_.bind(number);
}

Result<std::vector<bp_shape_t>> RunPlan::query_extents(const Step& step) const {
  const Program& program = *step.program;
  if (program.device->given_up()) return program.device->lost();
  std::vector<bp_tensor_t> inputs;  // without data, because the plan must be valid for any data
  for (const ReplicaRef& input : step.inputs) inputs.push_back(state_.tensor({input.value, BP_NONE}));
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

Status RunPlan::infer_outputs(const Step& step) const {
  const Program& program = *step.program;
  const bp_graph_t& graph = *program.view->abi();
  std::vector<bp_shape_t> shapes;
  for (uint32_t o = 0; o < step.outputs.size(); ++o) {
    const uint32_t value = step.outputs[o].value;
    if (graph_.values[value].kind != BP_KIND_TENSOR) continue;
    const bp_type_t& type = *bp_graph_type(&graph, bp_graph_value(&graph, graph.outputs[o])->type);
    bool is_static = type.rank >= 0;
    for (int32_t d = 0; is_static && d < type.rank; ++d) is_static = graph.dims[type.first_dim + d].extent >= 0;
    std::vector<int64_t> extents;
    if (is_static) {
      for (int32_t d = 0; d < type.rank; ++d) extents.push_back(graph.dims[type.first_dim + d].extent);
    } else if (program.info.shapes == BP_SHAPES_STATIC || !program.plugin->program->output_extents) {
      continue;  // the program requests the memory during the run
    } else {
      if (shapes.empty()) {
        BP_ASSIGN(shapes, query_extents(step));
      }
      const bp_shape_t& shape = shapes[o];
      if (shape.rank == BP_NONE) continue;  // as above, the program requests the memory during the run
      if (shape.rank > BP_MAX_RANK)
        return {BP_INTERNAL, "device '" + program.device->name() + "' reports a rank of " + std::to_string(shape.rank) +
                                 ", which is above BP_MAX_RANK"};
      extents.assign(shape.extents, shape.extents + shape.rank);
    }
    BP_TRY(state_.set_extents(value, std::move(extents)));
  }
  return {};
}

// ---- buffers --------------------------------------------------------------------------------------------------------

bool RunPlan::uses_host(ReplicaRef ref) const {
  const RunValue& value = graph_.values[ref.value];
  const Replica& replica = value.replicas[ref.replica];
  if (replica.writer == BP_NONE || graph_.tasks[replica.writer].transfer == BP_NONE) return false;
  const Transfer& transfer = graph_.transfers[graph_.tasks[replica.writer].transfer];
  return value.replicas[transfer.from].memory == 0 && ref.replica != value.user_replica && value.in(0) != BP_NONE &&
         graph_.memories[replica.memory]->zero_copy() &&
         state_.value(ref.value).bytes > kCopiedBytesPerReader * replica.readers.size();
}

Status RunPlan::place_buffers() {
  for (auto& values : in_arena_) values.clear();
  for (uint32_t v = 0; v < graph_.values.size(); ++v) {
    const RunValue& value = graph_.values[v];
    if (value.kind != BP_KIND_TENSOR || !state_.value(v).known) continue;
    const bool in_host = value.in(0) != BP_NONE;
    for (uint32_t r = 0; r < value.replicas.size(); ++r) {
      const uint32_t memory = value.replicas[r].memory;
      if (state_.replica({v, r}).user) continue;
      if ((in_host && state_.value(v).bytes && graph_.memories[memory]->shares_host()) || uses_host({v, r}))
        state_.set_imported({v, r});
      else if (r == value.user_replica)
        BP_TRY(state_.allocate({v, r}));
      else
        in_arena_[memory].push_back(v);
    }
  }
  for (uint32_t memory = 0; memory < in_arena_.size(); ++memory) BP_TRY(place_in(memory));
  for (uint32_t v = 0; v < graph_.values.size(); ++v) {
    if (!state_.value(v).known) continue;
    for (uint32_t r = 0; r < graph_.values[v].replicas.size(); ++r)
      if (state_.replica({v, r}).imported) BP_TRY(state_.import_from_host({v, r}));
  }
  return {};
}

Status RunPlan::place_in(uint32_t memory) {
  std::vector<Lifetime> lifetimes;
  std::vector<std::pair<uint32_t, uint32_t>> order;  // first task that uses the value, and the value
  for (uint32_t v : in_arena_[memory]) order.emplace_back(use_of(graph_.values[v], state_.value(v), memory).first, v);
  std::ranges::sort(order);
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t v = in_arena_[memory][i] = order[i].second;
    const RunState::Value& value = state_.value(v);
    lifetimes.push_back({value.bytes, order[i].first, use_of(graph_.values[v], value, memory).last, 0});
  }
  const uint64_t total = plan_memory(lifetimes, graph_.memories[memory]->alignment());
  if (total == UINT64_MAX)
    return {BP_RESOURCE_EXHAUSTED,
            "the values between islands need 2^64 bytes or more: check the extents of the inputs"};
  if (total) {
    Status status = state_.reserve_arena(memory, total);
    if (memory != 0 && status.code() == BP_RESOURCE_EXHAUSTED) return place_apart(memory);
    BP_TRY(std::move(status));
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t v = order[i].second;
    state_.place_in_arena({v, graph_.values[v].in(memory)}, lifetimes[i].offset, lifetimes[i].bytes);
  }
  return {};
}

// Allocates each value separately. Most drivers limit one allocation to a fraction of the device's memory.
Status RunPlan::place_apart(uint32_t memory) {
  for (uint32_t v : in_arena_[memory]) BP_TRY(state_.allocate({v, graph_.values[v].in(memory)}));
  return {};
}

// ---- order ----------------------------------------------------------------------------------------------------------

// `make` removes repetitions.
void RunPlan::put_after(uint32_t before, uint32_t task) {
  after_[task].push_back(before);
}

bool RunPlan::is_dynamic(const Task& task) const {
  return task.step != BP_NONE ? dynamic_steps_[task.step] : dynamic_values_[graph_.transfers[task.transfer].value];
}

bool RunPlan::is_shared(const Task& task) const {
  if (task.transfer == BP_NONE) return false;
  const Transfer& transfer = graph_.transfers[task.transfer];
  const std::vector<RunState::Buffer>& replicas = state_.value(transfer.value).replicas;
  return replicas[transfer.from].imported || replicas[transfer.to].imported;
}

// Whether the task is a transfer that copies nothing and flushes nothing.
bool RunPlan::does_nothing(const Task& task) const {
  if (task.transfer == BP_NONE || is_dynamic(task)) return false;
  const Transfer& transfer = graph_.transfers[task.transfer];
  return uses_host({transfer.value, transfer.to});
}

// Decides for which earlier tasks the host must wait before it starts a task. Unless the task is dynamic, no wait is
// needed if both tasks are in the same stream, or if the task waits on its device for the earlier task's mark (a
// semaphore).
void RunPlan::make_issues() {
  issues_.assign(graph_.tasks.size(), {});
  // By task: whether a later task follows in the same stream. When the later task has ended, so has this one.
  std::vector<uint8_t> followed(graph_.tasks.size());
  for (uint32_t t = 0; t < graph_.tasks.size(); ++t) {
    const Task& task = graph_.tasks[t];
    Issue& issue = issues_[t];
    if (does_nothing(task)) continue;
    issue.in_stream = task.lane != BP_NONE && !is_shared(task);
    for (uint32_t before : after_[t]) {
      if (does_nothing(graph_.tasks[before])) continue;
      const Task& other = graph_.tasks[before];
      Issue& earlier = issues_[before];
      if (issue.in_stream && earlier.in_stream && !is_dynamic(task)) {
        if (other.lane == task.lane) {
          followed[before] = 1;
          continue;
        }
        const Mark* const mark = state_.mark(before);
        if (mark && mark->of(task.lane)) {
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

void RunPlan::make_tasks() {
  make_issues();
  const uint32_t count = static_cast<uint32_t>(graph_.tasks.size());
  std::vector<const Device*> devices;
  for (const Step& step : graph_.steps)
    if (std::ranges::find(devices, step.program->device) == devices.end()) devices.push_back(step.program->device);
  // Tasks that can run at once: one island per device, and one copy.
  tasks_ = std::make_unique<TaskGraph>(count, static_cast<uint32_t>(devices.size()) + !graph_.transfers.empty());
  for (uint32_t task = 0; task < count; ++task) {
    const std::vector<uint32_t>& waits = issues_[task].host_before;  // ascending, like `after_`
    for (uint32_t before : after_[task]) tasks_->order(before, task, !std::ranges::binary_search(waits, before));
  }
}

// Lets a task write a buffer only after the last use of the buffers that previously occupied the same memory.
void RunPlan::order_buffers() {
  for (uint32_t memory = 0; memory < in_arena_.size(); ++memory) {
    Occupancy occupancy;
    for (uint32_t index : in_arena_[memory]) {
      const RunValue& value = graph_.values[index];
      Use use = use_of(value, state_.value(index), memory);
      const bp_buffer_t& buffer = state_.replica({index, value.in(memory)}).buffer;
      for (uint32_t task : occupancy.occupy(buffer, std::move(use.tasks)))
        if (task < use.first) put_after(task, use.first);
    }
  }
}

// The task that writes the memory that the framework bound to an output: the island, or the transfer to that memory if
// the island's device does not write it directly or as an import.
uint32_t RunPlan::writer_of(uint32_t output) const {
  const RunValue& value = graph_.values[output];
  const uint32_t writer = value.replicas[value.user_replica].writer;
  if (!is_shared(graph_.tasks[writer])) return writer;
  return value.replicas[graph_.transfers[graph_.tasks[writer].transfer].from].writer;
}

// The tasks that read the memory that the framework bound to an input, including those that read it as an import.
std::vector<uint32_t> RunPlan::readers_of(uint32_t input) const {
  const RunValue& value = graph_.values[input];
  std::vector<uint32_t> readers;
  for (uint32_t r = 0; r < value.replicas.size(); ++r) {
    if (r != value.user_replica && !state_.replica({input, r}).imported) continue;
    for (uint32_t task : value.replicas[r].readers)
      if (!is_shared(graph_.tasks[task])) readers.push_back(task);
  }
  return readers;
}

// If the framework bound an output to the memory of an input, the output may be written only after all other tasks have
// read the input, and if the writing island reads the input itself, it must be able to update the input in place. Also
// checks that each input that a program can only update in place has the same buffer as its output.
Status RunPlan::check_in_place() {
  updates_inputs_ = false;
  const BoundInputs bound(graph_, state_);
  for (uint32_t o : graph_.outputs) {
    const RunValue& output = graph_.values[o];
    if (output.producer == BP_NONE) continue;
    for (uint32_t i : bound.sharing_with(o)) {
      const RunValue& input = graph_.values[i];
      if (output.kind != BP_KIND_TENSOR)
        return {BP_UNSUPPORTED, "input '" + graph_.name_of(input) + "' and output '" + graph_.name_of(output) +
                                    "' are bound to the same container: bind two containers"};
      const uint32_t writer = writer_of(o);
      const std::vector<uint32_t> readers = readers_of(i);
      updates_inputs_ = true;
      const std::string pair =
          "input '" + graph_.name_of(input) + "' and output '" + graph_.name_of(output) + "' share memory, but ";
      for (uint32_t task : readers) {
        if (task == writer) continue;
        if (task > writer)
          return {BP_UNSUPPORTED, pair + "the input is read after the output was written: bind two buffers"};
        put_after(task, writer);
      }
      if (std::ranges::find(graph_.passthroughs, i, &PassthroughOutput::source) != graph_.passthroughs.end())
        return {BP_UNSUPPORTED, pair + "another output is a copy of the input: bind two buffers"};
      if (std::ranges::find(readers, writer) == readers.end()) continue;
      const Step& step = graph_.steps[output.producer];
      const auto slot = [&](const std::vector<ReplicaRef>& slots, uint32_t value) {
        return static_cast<uint32_t>(std::ranges::find(slots, value, &ReplicaRef::value) - slots.begin());
      };
      if (begin_of(state_.replica({i, input.user_replica}).buffer) !=
              begin_of(state_.replica({o, output.user_replica}).buffer) ||
          rule_of(step.program->info, slot(step.inputs, i), slot(step.outputs, o)) == BP_DONATE_NEVER)
        return {BP_UNSUPPORTED,
                pair + "device '" + step.program->device->name() + "' does not update it in place: bind two buffers"};
    }
  }
  BP_TRY(check_passthroughs(bound));
  for (const Step& step : graph_.steps) {
    const bp_program_info_t& info = step.program->info;
    for (uint32_t p = 0; info.inplace && p < info.inplace_count; ++p) {
      const bp_inplace_t& pair = info.inplace[p];
      if (pair.rule != BP_DONATE_MUST || pair.input >= step.inputs.size() || pair.output >= step.outputs.size())
        continue;
      const ReplicaRef &input = step.inputs[pair.input], &output = step.outputs[pair.output];
      if (!same_buffer(state_.tensor(input).buffer, state_.tensor(output).buffer) && is_shareable(input.value) &&
          !step.program->device->backend().isolated)
        return {BP_UNSUPPORTED, "device '" + step.program->device->name() + "' updates '" +
                                    graph_.name_of(graph_.values[input.value]) +
                                    "' in place, but the bound buffer was allocated for an isolated device, whose "
                                    "process could change it: bind other host memory"};
      if (!same_buffer(state_.tensor(input).buffer, state_.tensor(output).buffer))
        return {BP_UNSUPPORTED, "device '" + step.program->device->name() + "' updates '" +
                                    graph_.name_of(graph_.values[input.value]) + "' in place: bind its buffer to '" +
                                    graph_.name_of(graph_.values[output.value]) + "' too"};
    }
  }
  return {};
}

// Whether the buffer that the framework bound to the value is in memory that other processes can map.
bool RunPlan::is_shareable(uint32_t value) const {
  const uint32_t replica = graph_.values[value].user_replica;
  return replica != BP_NONE && graph_.memories[graph_.values[value].replicas[replica].memory]->is_shareable();
}

// Outputs that are copies are written one after another, after all tasks. So none of them may be bound to the memory of
// an input from which a later one is copied.
Status RunPlan::check_passthroughs(const BoundInputs& bound) {
  for (size_t k = 0; k < graph_.passthroughs.size(); ++k) {
    const PassthroughOutput& output = graph_.passthroughs[k];
    const RunValue& copied = graph_.values[output.value];
    for (uint32_t i : bound.sharing_with(output.value)) {
      const RunValue& input = graph_.values[i];
      // A copy of the input to its own memory or container changes nothing.
      if (output.source == i &&
          (input.kind != BP_KIND_TENSOR || begin_of(state_.replica({i, input.user_replica}).buffer) ==
                                               begin_of(state_.replica({output.value, copied.user_replica}).buffer)))
        continue;
      updates_inputs_ = true;
      const auto later = graph_.passthroughs.begin() + static_cast<std::ptrdiff_t>(k) + 1;
      if (std::find_if(later, graph_.passthroughs.end(),
                       [&](const PassthroughOutput& one) { return one.source == i; }) != graph_.passthroughs.end())
        return {BP_UNSUPPORTED, "input '" + graph_.name_of(input) + "' and output '" + graph_.name_of(copied) +
                                    "' share memory, but another output is a copy of the input: bind two buffers"};
    }
  }
  return {};
}

}  // namespace backplane

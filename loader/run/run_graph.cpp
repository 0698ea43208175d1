// SPDX-License-Identifier: Apache-2.0
#include "run/run_graph.h"

#include <algorithm>
#include <map>

#include "run/lane.h"

namespace backplane {
namespace {

// A device that works on host memory gets a copy of a value in its own memory only if at least this many of its islands
// read the value. For fewer, the copy costs more than it saves.
constexpr uint32_t kCopiedReaders = 3;

class Maker {
 public:
  Maker(const model::Graph& graph, std::span<const std::shared_ptr<Program>> programs, Services& services,
        const BoundLocations& locations, RunGraph& run)
      : graph_(graph), programs_(programs), services_(services), locations_(locations), run_(run) {
    run_.model = &graph;
    run_value_of_.assign(graph_.values.size(), BP_NONE);
    output_memory_of_.assign(graph_.values.size(), BP_NONE);
    used_in_process_.assign(graph_.values.size(), 0);
  }

  Status make() {
    BP_TRY(make_memories());
    make_framework_memory();
    BP_TRY(make_private_memories());
    BP_TRY(make_reader_memories());
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const uint32_t index = run_value_for(graph_.inputs[i]);
      run_.inputs.push_back(index);
      RunValue& value = run_.values[index];
      if (value.kind == BP_KIND_TENSOR && value.replicas.empty())
        value.user_replica = add_replica(value, memory_for(graph_.inputs[i], locations_.inputs[i]), BP_NONE);
    }
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      uint32_t& output_memory = output_memory_of_[graph_.outputs[o]];
      if (output_memory == BP_NONE) output_memory = memory_for(graph_.outputs[o], locations_.outputs[o]);
    }
    BP_TRY(make_isolated_outputs());
    for (const auto& program : programs_) add_step(*program);
    BP_TRY(add_outputs());
    make_lanes();
    for (const auto& [device, memory] : devices_) run_.devices.push_back(device);
    return {};
  }

 private:
  Status make_memories() {
    uint64_t alignment = 64;
    const auto add = [&](Device* device) -> Status {
      if (!device || std::ranges::any_of(devices_, [&](auto& known) { return known.first == device; })) return {};
      BP_ASSIGN(Memory memory, Memory::of(*device, services_));
      if (memory.shares_host() || !memory.device()) alignment = std::max(alignment, memory.alignment());
      devices_.emplace_back(device, 0);
      if (!memory.device()) return {};
      devices_.back().second = static_cast<uint32_t>(run_.memories.size());
      run_.memories.push_back(std::make_unique<const Memory>(memory));
      return {};
    };
    run_.memories.emplace_back();
    for (const auto& program : programs_) BP_TRY(add(program->device));
    for (const auto* bound : {&locations_.inputs, &locations_.outputs}) {
      for (const MemoryLocation& location : *bound) {
        BP_TRY(add(location.device));
        if (location.device && memory_of(location.device) == 0) BP_TRY(add_space(location));
      }
    }
    run_.memories[0] = std::make_unique<const Memory>(services_, alignment);
    return {};
  }

  Status add_space(const MemoryLocation& location) {
    if (memory_of(location) != 0) return {};
    BP_ASSIGN(Memory memory, Memory::of_space(*location.device, location.space, services_));
    spaces_.emplace_back(location, static_cast<uint32_t>(run_.memories.size()));
    run_.memories.push_back(std::make_unique<const Memory>(memory));
    return {};
  }

  // A process that maps memory can change it at any time, also between a kernel's check of an index and its use. So
  // islands of this process's backends never work on such memory: values that they read are copied to host memory that
  // no other process maps, and results are copied from there. Islands of isolated backends use any host memory:
  // what their process cannot map, the proxies copy.
  void make_framework_memory() {
    for (const auto& program : programs_) {
      if (program->device->backend().isolated) continue;
      for (const auto* ends : {&program->inputs, &program->outputs})
        for (model::ValueId id : *ends) used_in_process_[id] = 1;
    }
    const auto is_shareable = [](const MemoryLocation& location) { return location.shareable; };
    if (std::ranges::none_of(locations_.inputs, is_shareable) && std::ranges::none_of(locations_.outputs, is_shareable))
      return;
    framework_memory_ = add_shareable();
  }

  uint32_t add_shareable() {
    run_.memories.push_back(std::make_unique<const Memory>(Memory::shareable(services_)));
    return static_cast<uint32_t>(run_.memories.size() - 1);
  }

  // Outputs of the graph that islands of isolated backends write are in memory that their process can map, so that
  // nothing is copied unless other islands read them too. Not strings: the framework uses the offsets in them, which
  // the process could change.
  Status make_isolated_outputs() {
    for (const auto& program : programs_) {
      if (!program->device->backend().isolated) continue;
      for (model::ValueId id : program->outputs) {
        uint32_t& output_memory = output_memory_of_[id];
        if (output_memory == BP_NONE || run_.memories[output_memory]->device() ||
            graph_.values[id].type.dtype == BP_DTYPE_STRING)
          continue;
        BP_ASSIGN(output_memory, own_memory_of(program->device));
      }
    }
    return {};
  }

  // Puts a value that only one device's islands use into that device's own memory, even if the device works on host
  // memory. In host memory, the value would have to be handed to the device before each island and back afterwards, or
  // copied if another process runs them.
  Status make_private_memories() {
    private_memory_of_.assign(graph_.values.size(), 0);
    std::vector<Device*> user_of(graph_.values.size());  // the first device that uses the value
    std::vector<uint8_t> is_shared(graph_.values.size());
    for (const auto* ends : {&graph_.inputs, &graph_.outputs})
      for (model::ValueId id : *ends) is_shared[id] = 1;
    for (const auto& program : programs_) {
      for (const auto* ends : {&program->inputs, &program->outputs}) {
        for (model::ValueId id : *ends) {
          if (!user_of[id]) user_of[id] = program->device;
          if (user_of[id] != program->device) is_shared[id] = 1;
        }
      }
    }
    for (const auto& program : programs_) {
      for (model::ValueId id : program->outputs) {
        if (is_shared[id] || graph_.values[id].type.dtype == BP_DTYPE_STRING) continue;
        BP_ASSIGN(private_memory_of_[id], own_memory_of(program->device));
      }
    }
    return {};
  }

  // Counts for each value in host memory the islands of each device that read it. If there are several, replica_for
  // adds a replica in the device's own memory, because otherwise each island would hand the host memory to the device
  // and back. The plan decides whether the replica is a copy or, for a large value, the host memory itself.
  Status make_reader_memories() {
    for (const auto& program : programs_) {
      if (program->device->backend().isolated) continue;
      for (uint32_t i = 0; i < program->inputs.size(); ++i) {
        const model::ValueId id = program->inputs[i];
        const model::Type& type = graph_.values[id].type;
        const bool is_tensor = !type.kind || type.kind == BP_KIND_TENSOR;
        if (!is_tensor || type.dtype == BP_DTYPE_STRING || private_memory_of_[id] != 0) continue;
        BP_ASSIGN(const uint32_t memory, own_memory_of(program->device));
        if (memory == 0) continue;
        const bp_program_info_t& info = program->info;
        const bool is_updated = info.inplace && std::any_of(info.inplace, info.inplace + info.inplace_count,
                                                            [&](auto& pair) { return pair.input == i; });
        Readers& readers = readers_of_[{program->device, id}];
        readers.memory = memory;
        readers.islands += 1;
        readers.updates = readers.updates || is_updated;
      }
    }
    return {};
  }

  // For a device that works on host memory: the index of its own memory, which holds values that only its islands use,
  // and copies. 0: it has none, or does not work on host memory. For an isolated device, it is memory that its process
  // can map.
  Result<uint32_t> own_memory_of(Device* device) {
    if (memory_of(device) != 0) return 0u;
    const auto found = std::ranges::find(own_memories_, device, [](auto& one) { return one.first; });
    if (found != own_memories_.end()) return found->second;
    if (device->backend().isolated) return own_memories_.emplace_back(device, add_shareable()).second;
    BP_ASSIGN(const uint32_t space, Memory::own_space(*device));
    const MemoryLocation location{device, space};
    if (space != BP_NONE) BP_TRY(add_space(location));
    return own_memories_.emplace_back(device, space != BP_NONE ? memory_of(location) : 0).second;
  }

  uint32_t memory_of(Device* device) const {
    const auto found = std::ranges::find(devices_, device, [](auto& known) { return known.first; });
    return found->second;
  }

  // Returns the index of the memory that holds a framework's buffer.
  uint32_t memory_of(const MemoryLocation& location) const {
    const auto found = std::ranges::find(spaces_, location, [](auto& known) { return known.first; });
    return found != spaces_.end() ? found->second : location.device ? memory_of(location.device) : 0;
  }

  // Returns the index of the memory that holds the framework's buffer for a value.
  uint32_t memory_for(model::ValueId id, const MemoryLocation& location) const {
    return location.shareable && used_in_process_[id] ? framework_memory_ : memory_of(location);
  }

  // Whether a device's islands use buffers of `memory` without a copy, although the device works in another memory.
  bool uses_directly(Device* device, uint32_t memory) const {
    if (memory == BP_NONE) return false;
    const Memory& holding = *run_.memories[memory];
    if (device->backend().isolated) return !holding.device();
    return holding.device() == device && holding.zero_copy();
  }

  uint32_t new_run_value(model::ValueId id) {
    RunValue& value = run_.values.emplace_back();
    const model::Type& type = graph_.values[id].type;
    value.value = id;
    value.kind = type.kind ? type.kind : BP_KIND_TENSOR;
    value.dtype = type.dtype;
    value.in_process = used_in_process_[id];
    return static_cast<uint32_t>(run_.values.size() - 1);
  }

  uint32_t run_value_for(model::ValueId id) {
    return run_value_of_[id] != BP_NONE ? run_value_of_[id] : run_value_of_[id] = new_run_value(id);
  }

  static uint32_t add_replica(RunValue& value, uint32_t memory, uint32_t writer) {
    Replica& replica = value.replicas.emplace_back();
    replica.memory = memory;
    replica.writer = writer;
    return static_cast<uint32_t>(value.replicas.size() - 1);
  }

  // Whether a value is copied from one memory to the other without a replica in host memory. A device that imports host
  // memory has the value as soon as that replica is written, so nothing is copied to or from its memory directly.
  bool is_direct(uint32_t from, uint32_t to) const {
    const Memory &source = *run_.memories[from], &target = *run_.memories[to];
    if (from != 0 && to != 0 && (source.shares_host() || target.shares_host())) return false;
    return direct(source, target);
  }

  // Returns the index of a value's replica in a memory. If there is none, adds it, and the transfer that writes it (or
  // two transfers through host memory).
  uint32_t replica_in(uint32_t index, uint32_t memory) {
    RunValue& value = run_.values[index];
    if (const uint32_t found = value.in(memory); found != BP_NONE) return found;
    uint32_t from = 0;  // replica 0 is the one that the producer or the framework writes
    if (!is_direct(value.replicas[0].memory, memory)) from = replica_in(index, 0);
    const uint32_t number = static_cast<uint32_t>(run_.tasks.size());
    const uint32_t to = add_replica(value, memory, number);
    Task& task = run_.tasks.emplace_back();
    task.transfer = static_cast<uint32_t>(run_.transfers.size());
    run_.transfers.push_back({index, from, to});
    read(value.replicas[from], number);
    return to;
  }

  // Returns the index of the value's replica that islands of the device read.
  uint32_t replica_for(Device* device, uint32_t index) {
    const std::vector<Replica>& replicas = run_.values[index].replicas;
    for (uint32_t r = 0; r < replicas.size(); ++r)
      if (uses_directly(device, replicas[r].memory)) return r;
    const auto found = readers_of_.find({device, run_.values[index].value});
    if (found != readers_of_.end() && found->second.islands >= kCopiedReaders && !found->second.updates)
      return replica_in(index, found->second.memory);
    return replica_in(index, memory_of(device));
  }

  void read(Replica& replica, uint32_t task) {
    replica.readers.push_back(task);
    if (replica.writer != BP_NONE) run_.tasks[task].after.push_back(replica.writer);
  }

  void add_step(const Program& program) {
    const uint32_t number = static_cast<uint32_t>(run_.steps.size());
    Step step;
    step.program = &program;
    step.memory = memory_of(program.device);
    for (model::ValueId id : program.inputs) {
      const uint32_t value = run_value_for(id);
      const bool is_tensor = run_.values[value].kind == BP_KIND_TENSOR;
      step.inputs.push_back({value, is_tensor ? replica_for(program.device, value) : BP_NONE});
    }
    step.task = static_cast<uint32_t>(run_.tasks.size());
    Task& task = run_.tasks.emplace_back();
    task.step = number;
    for (const ReplicaRef& input : step.inputs) {
      RunValue& value = run_.values[input.value];
      if (input.replica != BP_NONE)
        read(value.replicas[input.replica], step.task);
      else if (value.producer != BP_NONE)
        task.after.push_back(run_.steps[value.producer].task);
    }
    // A device runs one island at a time, in the order of the steps.
    for (uint32_t k = number; k-- > 0;) {
      if (run_.steps[k].program->device != program.device) continue;
      task.after.push_back(run_.steps[k].task);
      break;
    }
    for (model::ValueId id : program.outputs) {
      const uint32_t index = run_value_for(id);
      RunValue& value = run_.values[index];
      value.producer = number;
      const uint32_t output_memory = output_memory_of_[id];
      const uint32_t written = uses_directly(program.device, output_memory) ? output_memory
                               : private_memory_of_[id] != 0                ? private_memory_of_[id]
                                                                            : step.memory;
      step.outputs.push_back({index, value.kind == BP_KIND_TENSOR ? add_replica(value, written, step.task) : BP_NONE});
    }
    const std::vector<ReplicaRef> outputs = step.outputs;
    run_.steps.push_back(std::move(step));
    for (const ReplicaRef& output : outputs) {
      const uint32_t output_memory = output_memory_of_[run_.values[output.value].value];
      if (output_memory == BP_NONE || output.replica == BP_NONE) continue;
      const uint32_t replica = replica_in(output.value, output_memory);
      run_.values[output.value].user_replica = replica;
    }
  }

  Status add_outputs() {
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const model::ValueId id = graph_.outputs[o];
      uint32_t index = run_value_of_[id];
      if (index == BP_NONE || run_.values[index].producer == BP_NONE || run_.values[index].output) {
        if (index == BP_NONE && graph_.values[id].weight == BP_NONE)
          return {BP_INTERNAL, "output '" + graph_.values[id].name + "' is written by no island"};
        const uint32_t source = index;
        index = new_run_value(id);
        RunValue& copy = run_.values[index];
        if (copy.kind == BP_KIND_TENSOR)
          copy.user_replica = add_replica(copy, memory_of(locations_.outputs[o]), BP_NONE);
        run_.passthroughs.push_back({index, source});
      }
      run_.outputs.push_back(index);
      run_.values[index].output = true;
    }
    return {};
  }

  // Assigns a stream, if the device has them, to each device with several tasks, so that the tasks follow each other
  // without the host, and to each device that copies, because a copy outside a stream blocks the calling thread even if
  // the device hangs.
  void make_lanes() {
    struct Candidate {
      Device* device;
      std::vector<uint32_t> tasks;
      bool copies = false;
    };
    std::vector<Candidate> candidates;
    const auto add = [&](Device* device, uint32_t task, bool copies) {
      if (!device || !Lane::possible(*device)) return;
      auto found = std::ranges::find(candidates, device, &Candidate::device);
      if (found == candidates.end()) found = candidates.insert(found, {device, {}, false});
      if (task != BP_NONE) found->tasks.push_back(task);
      found->copies = found->copies || copies;
    };
    for (uint32_t t = 0; t < run_.tasks.size(); ++t) {
      const Task& task = run_.tasks[t];
      if (task.step != BP_NONE)
        add(run_.steps[task.step].program->device, t, false);
      else
        add(run_.copier_of(run_.transfers[task.transfer]), t, true);
    }
    for (const PassthroughOutput& output : run_.passthroughs) {
      if (run_.values[output.value].kind != BP_KIND_TENSOR) continue;
      const auto [from, to] = run_.memories_of(output);
      add(to.device() ? to.device() : from.device(), BP_NONE, true);
      if (!direct(from, to)) add(from.device(), BP_NONE, true);
    }
    for (const Candidate& candidate : candidates) {
      if (candidate.tasks.size() < 2 && !candidate.copies) continue;
      for (uint32_t t : candidate.tasks) run_.tasks[t].lane = static_cast<uint32_t>(run_.lanes.size());
      run_.lanes.push_back(candidate.device);
    }
  }

  const model::Graph& graph_;
  const std::span<const std::shared_ptr<Program>> programs_;
  Services& services_;
  const BoundLocations& locations_;
  RunGraph& run_;
  std::vector<std::pair<Device*, uint32_t>> devices_;  // each device, with the index of the memory in which it works
  std::vector<std::pair<MemoryLocation, uint32_t>> spaces_;  // additional spaces, with the memories in them
  std::vector<uint32_t> run_value_of_;                       // indexed by model value
  std::vector<uint32_t> output_memory_of_;  // by model value: the memory of the buffer that is bound to an output
  // By model value: the index of the device's own memory if only its islands use the value; otherwise 0.
  std::vector<uint32_t> private_memory_of_;
  std::vector<std::pair<Device*, uint32_t>> own_memories_;  // the results of `own_memory_of`
  std::vector<uint8_t> used_in_process_;                    // by model value: see RunValue::in_process
  uint32_t framework_memory_ = 0;  // the framework's shareable host memory; 0: nothing is bound to any
  // The islands of a device that read a value.
  struct Readers {
    uint32_t memory = 0;  // the device's own memory
    uint32_t islands = 0;
    bool updates = false;  // one of them may update the value in place, which is allowed in the framework's buffer only
  };
  std::map<std::pair<Device*, model::ValueId>, Readers> readers_of_;
};

}  // namespace

uint32_t RunValue::in(uint32_t memory) const {
  for (uint32_t i = 0; i < replicas.size(); ++i)
    if (replicas[i].memory == memory) return i;
  return BP_NONE;
}

Result<std::unique_ptr<const RunGraph>> RunGraph::make(const model::Graph& graph,
                                                       std::span<const std::shared_ptr<Program>> programs,
                                                       Services& services, const BoundLocations& locations) {
  auto run = std::make_unique<RunGraph>();
  BP_TRY(Maker(graph, programs, services, locations, *run).make());
  return std::unique_ptr<const RunGraph>(std::move(run));
}

RunGraph::Memories RunGraph::memories_of(const PassthroughOutput& output) const {
  const RunValue& value = values[output.value];
  const Memory& to = *memories[value.replicas[value.user_replica].memory];
  if (output.source == BP_NONE) return {*memories[0], to};
  const RunValue& source = values[output.source];
  return {*memories[source.replicas[source.user_replica == BP_NONE ? 0 : source.user_replica].memory], to};
}

Device* RunGraph::copier_of(const Transfer& transfer) const {
  const std::vector<Replica>& replicas = values[transfer.value].replicas;
  return copier(*memories[replicas[transfer.from].memory], *memories[replicas[transfer.to].memory]);
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
#include "run/route.h"

#include <algorithm>

#include "host/container.h"

namespace backplane {
namespace {

class Maker {
 public:
  Maker(const Session& session, const Homes& homes, Route& route)
      : session_(session), graph_(session.model().graph), homes_(homes), route_(route) {
    edge_of_.assign(graph_.values.size(), BP_NONE);
    home_of_.assign(graph_.values.size(), BP_NONE);
  }

  Status make() {
    BP_TRY(make_memories());
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const uint32_t index = edge_for(graph_.inputs[i]);
      route_.inputs.push_back(index);
      Edge& edge = route_.edges[index];
      if (edge.kind == BP_KIND_TENSOR && edge.replicas.empty()) {
        edge.home = add_replica(edge, memory_of(homes_.inputs[i]), BP_NONE);
      }
    }
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      uint32_t& home = home_of_[graph_.outputs[o]];
      if (home == BP_NONE) home = memory_of(homes_.outputs[o]);
    }
    for (const auto& program : session_.programs()) BP_TRY(add_step(*program));
    BP_TRY(add_outputs());
    return make_lanes();
  }

 private:
  Status make_memories() {
    Services& services = session_.environment().services();
    uint64_t alignment = 64;
    const auto add = [&](Device* device) -> Status {
      if (!device || std::ranges::any_of(devices_, [&](auto& known) { return known.first == device; })) return {};
      BP_ASSIGN(Memory memory, Memory::of(*device, services));
      if (memory.shares_host()) alignment = std::max(alignment, memory.alignment());
      devices_.emplace_back(device, 0);
      if (!memory.device()) return {};
      devices_.back().second = static_cast<uint32_t>(route_.memories.size());
      route_.memories.push_back(std::make_unique<Memory>(memory));
      return {};
    };
    route_.memories.emplace_back();
    for (const auto& program : session_.programs()) BP_TRY(add(program->device));
    for (const auto* homes : {&homes_.inputs, &homes_.outputs}) {
      for (const Home& home : *homes) {
        BP_TRY(add(home.device));
        if (!home.device || memory_of(home.device) != 0 || memory_of(home) != 0) continue;
        BP_ASSIGN(Memory memory, Memory::lent(*home.device, home.space, services));
        lent_.emplace_back(home, static_cast<uint32_t>(route_.memories.size()));
        route_.memories.push_back(std::make_unique<Memory>(memory));
      }
    }
    route_.memories[0] = std::make_unique<Memory>(services, alignment);
    return {};
  }

  // In which a device works.
  uint32_t memory_of(Device* device) const {
    const auto found = std::ranges::find(devices_, device, [](auto& known) { return known.first; });
    return found->second;
  }

  // In which a buffer of the framework lies.
  uint32_t memory_of(const Home& home) const {
    const auto lent = std::ranges::find(lent_, home, [](auto& known) { return known.first; });
    return lent != lent_.end() ? lent->second : home.device ? memory_of(home.device) : 0;
  }

  // Whether a device's islands take buffers of a memory as they are, beside those of the one in which it works.
  bool takes(Device* device, uint32_t memory) const {
    return memory != BP_NONE && route_.memories[memory]->device() == device && route_.memories[memory]->as_it_is();
  }

  uint32_t new_edge(model::ValueId value) {
    Edge& edge = route_.edges.emplace_back();
    const model::Type& type = graph_.values[value].type;
    edge.value = value;
    edge.kind = type.kind ? type.kind : BP_KIND_TENSOR;
    edge.dtype = type.dtype;
    if (edge.kind != BP_KIND_TENSOR) {
      edge.own_container = std::make_unique<bp_container_t>(edge.kind);
      edge.container = edge.own_container.get();
    }
    return static_cast<uint32_t>(route_.edges.size() - 1);
  }

  uint32_t edge_for(model::ValueId value) {
    return edge_of_[value] != BP_NONE ? edge_of_[value] : edge_of_[value] = new_edge(value);
  }

  static uint32_t add_replica(Edge& edge, uint32_t memory, uint32_t writer) {
    Replica& replica = edge.replicas.emplace_back();
    replica.memory = memory;
    replica.writer = writer;
    return static_cast<uint32_t>(edge.replicas.size() - 1);
  }

  // The edge's replica in a memory, moved there on the way that is shortest.
  uint32_t replica_in(uint32_t index, uint32_t memory) {
    Edge& edge = route_.edges[index];
    if (const uint32_t found = edge.in(memory); found != BP_NONE) return found;
    uint32_t from = 0;  // where it is made
    if (!direct(*route_.memories[edge.replicas[0].memory], *route_.memories[memory])) from = replica_in(index, 0);
    const uint32_t task = static_cast<uint32_t>(route_.tasks.size());
    const uint32_t to = add_replica(edge, memory, task);
    Task& moving = route_.tasks.emplace_back();
    moving.transfer = static_cast<uint32_t>(route_.transfers.size());
    route_.transfers.push_back({index, from, to});
    read(edge.replicas[from], task);
    return to;
  }

  // The edge's replica that an island of the device reads.
  uint32_t replica_for(Device* device, uint32_t index) {
    const std::vector<Replica>& replicas = route_.edges[index].replicas;
    for (uint32_t r = 0; r < replicas.size(); ++r)
      if (takes(device, replicas[r].memory)) return r;
    return replica_in(index, memory_of(device));
  }

  // The task reads the replica.
  void read(Replica& replica, uint32_t task) {
    replica.readers.push_back(task);
    if (replica.writer != BP_NONE) route_.tasks[task].after.push_back(replica.writer);
  }

  Status add_step(const Program& program) {
    const uint32_t number = static_cast<uint32_t>(route_.steps.size());
    Step step;
    step.program = &program;
    const uint32_t memory = step.memory = memory_of(program.device);
    for (model::ValueId value : program.inputs) {
      const uint32_t edge = edge_for(value);
      const bool is_tensor = route_.edges[edge].kind == BP_KIND_TENSOR;
      step.inputs.push_back({edge, is_tensor ? replica_for(program.device, edge) : BP_NONE});
    }
    step.task = static_cast<uint32_t>(route_.tasks.size());
    Task& task = route_.tasks.emplace_back();
    task.step = number;
    for (const Place& place : step.inputs) {
      Edge& edge = route_.edges[place.edge];
      if (place.replica != BP_NONE)
        read(edge.replicas[place.replica], step.task);
      else if (edge.producer != BP_NONE)
        task.after.push_back(route_.steps[edge.producer].task);
    }
    // A device runs one island at a time, in order.
    for (uint32_t k = number; k-- > 0;) {
      if (route_.steps[k].program->device != program.device) continue;
      task.after.push_back(route_.steps[k].task);
      break;
    }
    for (model::ValueId value : program.outputs) {
      const uint32_t index = edge_for(value);
      Edge& edge = route_.edges[index];
      edge.producer = number;
      const uint32_t home = home_of_[value];
      const uint32_t written = takes(program.device, home) ? home : memory;
      step.outputs.push_back({index, edge.kind == BP_KIND_TENSOR ? add_replica(edge, written, step.task) : BP_NONE});
    }
    step.bound.resize(step.inputs.size() + step.outputs.size());
    PluginError error;
    bp_instance_create_t how{};
    how.size = sizeof how;
    const bp_status_t code = program.plugin->instance->create(program.handle, &how, &step.instance, error.get());
    route_.steps.push_back(std::move(step));
    BP_TRY(error.status(code, "device '" + program.device->name() + "'"));
    for (const Place& place : route_.steps.back().outputs) {
      const uint32_t home = home_of_[route_.edges[place.edge].value];
      if (home != BP_NONE && place.replica != BP_NONE) route_.edges[place.edge].home = replica_in(place.edge, home);
    }
    return {};
  }

  Status add_outputs() {
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const model::ValueId value = graph_.outputs[o];
      uint32_t edge = edge_of_[value];
      if (edge == BP_NONE || route_.edges[edge].producer == BP_NONE || route_.edges[edge].output) {
        if (edge == BP_NONE && graph_.values[value].weight == BP_NONE)
          return {BP_INTERNAL, "output '" + graph_.values[value].name + "' is made by no island"};
        const uint32_t from = edge;
        edge = new_edge(value);
        Edge& copy = route_.edges[edge];
        if (copy.kind == BP_KIND_TENSOR) copy.home = add_replica(copy, memory_of(homes_.outputs[o]), BP_NONE);
        route_.duplicates.push_back({edge, from});
      }
      route_.outputs.push_back(edge);
      route_.edges[edge].output = true;
    }
    return {};
  }

  // A stream for each device with work that can follow on other work without the host.
  Status make_lanes() {
    const auto device_of = [&](const Task& task) {
      if (task.step != BP_NONE) return route_.steps[task.step].program->device;
      const Transfer& moving = route_.transfers[task.transfer];
      const std::vector<Replica>& replicas = route_.edges[moving.edge].replicas;
      return copier(*route_.memories[replicas[moving.from].memory], *route_.memories[replicas[moving.to].memory]);
    };
    std::vector<std::pair<Device*, std::vector<uint32_t>>> tasks;  // by device
    for (uint32_t t = 0; t < route_.tasks.size(); ++t) {
      Device* const device = device_of(route_.tasks[t]);
      if (!device || !Lane::possible(*device)) continue;
      auto found = std::ranges::find(tasks, device, [](auto& known) { return known.first; });
      if (found == tasks.end()) found = tasks.insert(found, {device, {}});
      found->second.push_back(t);
    }
    for (const auto& [device, own] : tasks) {
      if (own.size() < 2) continue;
      BP_ASSIGN(Lane lane, Lane::make(*device));
      for (uint32_t t : own) route_.tasks[t].lane = static_cast<uint32_t>(route_.lanes.size());
      route_.lanes.push_back(std::move(lane));
    }
    for (const Task& task : route_.tasks) {
      if (task.lane == BP_NONE) continue;
      for (uint32_t before : task.after) {
        Task& other = route_.tasks[before];
        if (other.lane != BP_NONE && other.lane != task.lane)
          Mark::share(other.mark, route_.lanes[other.lane], route_.lanes[task.lane], task.lane);
      }
    }
    return {};
  }

  const Session& session_;
  const model::Graph& graph_;
  const Homes& homes_;
  Route& route_;
  std::vector<std::pair<Device*, uint32_t>> devices_;  // and the memories in which they work
  std::vector<std::pair<Home, uint32_t>> lent_;        // further spaces of theirs, and these memories
  std::vector<uint32_t> edge_of_;                      // by value
  std::vector<uint32_t> home_of_;                      // by value: the memory in which an output is wanted
};

}  // namespace

Result<std::unique_ptr<Route>> Route::make(const Session& session, const Homes& homes) {
  auto route = std::make_unique<Route>();
  BP_TRY(Maker(session, homes, *route).make());
  return route;
}

void Route::stop() {
  for (Step& step : steps) {
    if (step.instance) step.program->plugin->instance->destroy(step.instance);
    step.instance = nullptr;
  }
  for (Task& task : tasks) task.mark.reset();
  lanes.clear();
}

}  // namespace backplane

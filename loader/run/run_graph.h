// SPDX-License-Identifier: Apache-2.0
// The tasks of a run (islands and copies between memories) and the values between them. A value is copied only where
// its reader needs it in another memory. A RunGraph depends on the programs and on the memories of the framework's
// buffers, and is immutable. RunState holds everything that changes from run to run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "compile/compile.h"
#include "ir/graph.h"
#include "run/memory.h"

namespace backplane {

// The memory that holds a framework's buffer: a space of a device, or host memory if `device` is null.
struct MemoryLocation {
  Device* device = nullptr;
  uint32_t space = 0;
  bool shareable = false;  // host memory that the processes of isolated backends can map
  bool operator==(const MemoryLocation&) const = default;
};
struct BoundLocations {
  std::vector<MemoryLocation> inputs, outputs;  // by graph input and output; unbound: host memory
};

// One copy of a value, in one memory.
struct Replica {
  uint32_t memory = 0;            // index in RunGraph::memories
  uint32_t writer = BP_NONE;      // the task that writes it; BP_NONE: the framework, or a copy after all tasks
  std::vector<uint32_t> readers;  // the tasks that read it, ascending
};

// A value that is passed between islands, or between the framework and an island.
struct RunValue {
  model::ValueId value = BP_NONE;
  uint32_t kind = BP_KIND_TENSOR;
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;  // undefined: not known until the value is bound
  bool in_process = false;                // islands of backends in this process read or write it
  bool output = false;              // an output of the graph; if several outputs are this value, the others get copies
  uint32_t producer = BP_NONE;      // the step that writes it
  uint32_t user_replica = BP_NONE;  // of an input or output tensor: the replica that the framework may bind
  std::vector<Replica> replicas;    // empty for containers

  // The index of the replica in a memory, or BP_NONE.
  uint32_t in(uint32_t memory) const;
};

struct ReplicaRef {
  uint32_t value = BP_NONE, replica = BP_NONE;  // BP_NONE as replica: a container
};

// One island of the run.
struct Step {
  const Program* program = nullptr;
  std::vector<ReplicaRef> inputs, outputs;
  uint32_t task = BP_NONE;
  uint32_t memory = 0;  // index of the memory in which its device works
};

struct Transfer {
  uint32_t value, from, to;  // `from` and `to` are replicas of `value`
};

// A graph output that no island writes: it is a graph input, a weight, or a copy of another output.
struct PassthroughOutput {
  uint32_t value;
  uint32_t source;  // the value to copy; BP_NONE: a weight
};

struct Task {
  uint32_t step = BP_NONE, transfer = BP_NONE;  // exactly one is set
  std::vector<uint32_t> after;                  // tasks that must end before this one starts
  uint32_t lane = BP_NONE;  // index of the lane (stream) that can run it; BP_NONE: the host runs it or waits for it
};

struct RunGraph {
  // Opens the devices. `graph` and `programs` must outlive the result.
  static Result<std::unique_ptr<const RunGraph>> make(const model::Graph& graph,
                                                      std::span<const std::shared_ptr<Program>> programs,
                                                      Services& services, const BoundLocations& locations);

  const std::string& name_of(const RunValue& value) const { return model->values[value.value].name; }
  // The memories between which a passthrough output is copied. For a weight, `from` is host memory.
  struct Memories {
    const Memory &from, &to;
  };
  Memories memories_of(const PassthroughOutput& output) const;
  // The device whose plugin copies; null: the host copies.
  Device* copier_of(const Transfer& transfer) const;

  const model::Graph* model = nullptr;
  std::vector<std::unique_ptr<const Memory>> memories;  // [0] is host memory
  std::vector<RunValue> values;
  std::vector<Step> steps;
  std::vector<Transfer> transfers;
  std::vector<Task> tasks;             // in an order in which they can run
  std::vector<Device*> lanes;          // by lane: the device of its stream
  std::vector<const Device*> devices;  // every device that runs islands or owns one of the memories
  std::vector<PassthroughOutput> passthroughs;
  std::vector<uint32_t> inputs, outputs;  // for each input and output of the graph: its index in `values`
};

}  // namespace backplane

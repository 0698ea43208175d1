// SPDX-License-Identifier: Apache-2.0
// The tasks of a run: islands, copies between memories, and the values between them. A value is copied only when it
// changes its memory. A RunGraph is derived from the programs and the memories of the framework's buffers, and is
// immutable. What changes from run to run is in RunState.
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

// The memory of a framework's buffer: a space of a device, or, without a device, host memory.
struct MemoryLocation {
  Device* device = nullptr;
  uint32_t space = 0;
  bool operator==(const MemoryLocation&) const = default;
};
struct BoundLocations {
  std::vector<MemoryLocation> inputs, outputs;  // of the model's graph; host memory if nothing is bound
};

// A value in one memory.
struct Replica {
  uint32_t memory = 0;            // index in RunGraph::memories
  uint32_t writer = BP_NONE;      // the task that writes it; BP_NONE: the framework
  std::vector<uint32_t> readers;  // tasks, ascending
};

// A value that crosses between islands, or between the framework and an island.
struct RunValue {
  model::ValueId value = BP_NONE;
  uint32_t kind = BP_KIND_TENSOR;
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;  // undefined: known only when the value is bound
  bool output = false;                    // of the graph: then no other value shares the memory of its `user_replica`
  uint32_t producer = BP_NONE;            // the step that writes it
  uint32_t user_replica = BP_NONE;        // the framework's input or output; BP_NONE: the value is neither
  std::vector<Replica> replicas;          // none for containers

  // The index of the replica in a memory, or BP_NONE.
  uint32_t in(uint32_t memory) const;
};

struct ReplicaRef {
  uint32_t value = BP_NONE, replica = BP_NONE;  // BP_NONE as replica: a container
};

// An island in the run.
struct Step {
  const Program* program = nullptr;
  std::vector<ReplicaRef> inputs, outputs;
  uint32_t task = BP_NONE;
  uint32_t memory = 0;  // the one in which its device works
};

struct Transfer {
  uint32_t value, from, to;  // replicas
};

// A graph output that no island writes: it is an input, a weight, or a copy of another output.
struct PassthroughOutput {
  uint32_t value;
  uint32_t source;  // a value, or BP_NONE: a weight
};

struct Task {
  uint32_t step = BP_NONE, transfer = BP_NONE;  // exactly one is set
  std::vector<uint32_t> after;                  // tasks that must come before
  uint32_t lane = BP_NONE;  // the lane whose stream can take it; BP_NONE: the host does the task or waits for it
};

struct RunGraph {
  // Opens the devices. `graph` and `programs` must outlive the result.
  static Result<std::unique_ptr<const RunGraph>> make(const model::Graph& graph,
                                                      std::span<const std::shared_ptr<Program>> programs,
                                                      Services& services, const BoundLocations& locations);

  const std::string& name_of(const RunValue& value) const { return model->values[value.value].name; }
  // The memories between which a tensor is copied for such an output; `from` is host memory for a weight.
  struct Memories {
    const Memory &from, &to;
  };
  Memories memories_of(const PassthroughOutput& output) const;
  // The device whose plugin does the copy; null: the host copies.
  Device* copier_of(const Transfer& transfer) const;

  const model::Graph* model = nullptr;
  std::vector<std::unique_ptr<const Memory>> memories;  // host memory first
  std::vector<RunValue> values;
  std::vector<Step> steps;
  std::vector<Transfer> transfers;
  std::vector<Task> tasks;             // in an order in which they can run
  std::vector<Device*> lanes;          // the device of each stream
  std::vector<const Device*> devices;  // that run islands or own memories, each once
  std::vector<PassthroughOutput> passthroughs;
  std::vector<uint32_t> inputs, outputs;  // indices in `values` of the graph's inputs and outputs
};

}  // namespace backplane

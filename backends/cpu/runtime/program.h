// SPDX-License-Identifier: Apache-2.0
// A compiled island or subgraph: a kernel for each node, the weights, and schedules for the most recently used input
// extents.
#pragma once

#include <list>
#include <map>
#include <mutex>

#include "runtime/call.h"
#include "runtime/memory.h"
#include "runtime/planner.h"

namespace backplane::cpu {

class Body;
class Device;
class Schedule;

class Program {
 public:
  // `what.graph` must outlive the program. Throws sdk::Error.
  Program(Device& device, const bp_compile_t& what);
  // Compiles `graph`, a subgraph of one of the parent's nodes. Both `parent` and `graph` must outlive this program.
  // Values that are constants in the parent are constants here.
  Program(const Program& parent, const bp_compile_t& what, const bp_graph_t& graph);
  ~Program();

  Device& device() const { return device_; }
  PlanContext plan_context() const;
  const bp_graph_t& graph() const { return graph_; }
  std::span<const Call> calls() const { return calls_; }
  // `inputs`: the graph's inputs, then the captured values that are not known. `captures`: the indices of these
  // captured values in the outer graph.
  std::span<const uint32_t> inputs() const { return inputs_; }
  std::span<const uint32_t> captures() const { return captures_; }
  // Indexed by value of the graph. Each tensor has the value's data type. If the value is known (the same in every run:
  // a weight, or computed from weights), it also has extents and data.
  std::span<const Tensor> values() const { return values_; }
  bool known(uint32_t value) const { return known_[value]; }
  const std::vector<bool>& known_values() const { return known_; }
  uint32_t shapes() const { return shapes_; }  // one of BP_SHAPES_*
  // Pairs of an input and the output that is this input with some elements updated. The two may share a buffer.
  std::span<const bp_inplace_t> inplace() const { return inplace_; }
  // Bytes of copied weights and of values folded at compile time, subgraphs included. Does not count packed weights,
  // the copies by `aligned` and the values folded for a schedule.
  uint64_t held_bytes() const { return static_cast<uint64_t>(held_bytes_); }

  // Returns the declared type of a value of the graph.
  const bp_type_t& type_of(uint32_t value) const {
    return *bp_graph_type(&graph_, bp_graph_value(&graph_, value)->type);
  }
  // Whether these extents agree with the rank and the static extents of a declared type.
  bool admits(const bp_type_t& type, std::span<const int64_t> extents) const;

  // Whether all extents of the value's declared type are static.
  bool has_numbers(uint32_t value) const;
  std::string name_of(uint32_t value) const;

  // The allowance for folding while one schedule is created.
  FoldAllowance schedule_folding() const;

  // Compiles one of the graph's subgraphs. The program owns the body. For constructors of kernels.
  const Body& add_body(uint32_t subgraph);

  // Returns a known value's data, aligned for its type: its own memory, or a copy that is created once. Thread-safe.
  void* aligned(uint32_t value) const;

  // Reports that a kernel has packed its own copy of this value. If the value is a weight of the main graph that has no
  // other reader, the host may release its pages.
  void consumed(uint32_t value) const;

  // Returns the schedule for these extents, one shape per input, from the cache if it is there. Thread-safe. Throws
  // sdk::Error.
  std::shared_ptr<const Schedule> schedule(std::span<const Shape> inputs) const;

 private:
  void capture(const Program& parent);
  void map_weights();
  Block copy_weight(uint32_t value, int64_t bytes) const;
  void create_kernels(const bp_compile_t& what);
  void fold_and_fuse();
  void fold_constants();
  void count_reads();
  void pair_in_place();
  bool have_equal_extents(uint32_t a, uint32_t b) const;
  uint32_t classify() const;

  Device& device_;
  const uint32_t compute_types_;  // BP_COMPUTE_* that the session allows
  const bp_graph_t& graph_;
  const bp_compile_t* what_ = nullptr;  // null after compiling
  FoldAllowance folding_{};             // allowance while compiling
  int64_t foldable_bytes_ = 0;  // limit for all values folded in the program, and again for those of each schedule
  std::vector<uint32_t> inputs_;
  std::vector<uint32_t> captures_;
  std::vector<std::unique_ptr<Body>> bodies_;
  std::vector<Call> calls_;
  std::vector<Tensor> values_;
  std::vector<bool> known_;
  std::vector<uint32_t> reads_;  // by value: how many inputs of calls and graph outputs read it; empty in a subgraph
  std::vector<Block> blocks_;
  mutable std::mutex copies_mutex_;
  mutable std::map<uint32_t, Block> copies_;  // by value: aligned copies of unaligned data
  int64_t held_bytes_ = 0;
  std::vector<bp_inplace_t> inplace_;
  uint32_t shapes_ = BP_SHAPES_DATA_DEPENDENT;

  struct Entry {
    std::vector<Shape> inputs;
    std::shared_ptr<const Schedule> schedule;
  };
  mutable std::mutex mutex_;
  mutable std::list<Entry> cache_;  // most recently used first
};

}  // namespace backplane::cpu

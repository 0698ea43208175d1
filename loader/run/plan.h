// SPDX-License-Identifier: Apache-2.0
// What follows from the inputs' extents: the extents of everything else, buffers in one block a memory, what is bound
// to which slot, and the order in which tasks may run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "run/route.h"
#include "run/tasks.h"
#include "session/session.h"

namespace backplane {

class Plan {
 public:
  // Both outlive it.
  Plan(const Session& session, Route& route);

  // Plans anew. Inputs are bound; extents and bytes of their edges are set.
  Status make();
  // Plans and binds a late step, when it is its turn.
  Status settle(Step& step);
  // Memory of its own for a replica, as large as its edge's bytes.
  Status give_buffer(Edge& edge, Replica& replica);

  TaskGraph& tasks() { return *tasks_; }
  // How a task is put into its lane's stream.
  struct Issue {
    bool in_stream = false;               // it has a lane, and is an island or a copy of bytes
    bool reports = false;                 // the host must hear of its end
    std::vector<uint32_t> host_before;    // tasks whose end the host waits for before it is started
    std::vector<uint32_t> marked_before;  // tasks of other lanes for whose mark it waits
    bool marks = false;                   // it signals its mark
  };
  const Issue& issue(uint32_t task) const { return issues_[task]; }
  // Whether the framework bound an output to the memory of an input.
  bool updates_inputs() const { return updates_inputs_; }

 private:
  Status shape_all();
  // The extents of its outputs, as the program computes them from those of its inputs.
  Result<std::vector<bp_shape_t>> ask_shapes(const Step& step) const;
  Status shape_outputs(Step& step);
  Status set_extents(Edge& edge, std::vector<int64_t> extents) const;
  Status place_buffers();
  Status place_in(uint32_t memory);
  Status share(Edge& edge);
  Status bind_scratch(Step& step);
  Status bind(Step& step);
  Status bind_slot(Step& step, uint32_t slot, const Place& place, Step::Bound& bound);
  void put_after(uint32_t before, uint32_t task);
  void order_buffers();
  void make_tasks();
  void make_issues();
  bool is_late(const Task& task) const;
  Status check_in_place();
  const std::string& name_of(const Edge& edge) const;

  const Session& session_;
  Route& route_;
  std::vector<Block> arenas_;                    // by memory
  std::map<const Device*, Block> scratch_;       // of all instances on the device
  std::vector<Block> views_;                     // by memory: the import of the host's arena
  std::vector<std::vector<uint32_t>> in_arena_;  // by memory: edges, by their first task
  std::unique_ptr<TaskGraph> tasks_;
  std::vector<std::vector<uint32_t>> after_;  // by task: those that come before it
  std::vector<Issue> issues_;                 // by task
  bool updates_inputs_ = false;
  // Extents of all edges for those of the inputs, by these; an edge without is late.
  std::map<std::vector<int64_t>, std::vector<std::optional<std::vector<int64_t>>>> shapes_;
};

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// A session's run state: instances of its programs, the memory between them, what the framework bound. What bp_exec_t is.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "run/edge.h"
#include "run/worker.h"
#include "session.h"
#include "status.h"

namespace backplane {

class Exec {
 public:
  static Result<std::unique_ptr<Exec>> create(std::shared_ptr<const Session> session);
  ~Exec();

  // Slots as in plugin.h. Extents may change on every run; what follows from them is planned again only when they do.
  Status bind(uint32_t slot, const bp_tensor_t& tensor);
  Status bind_container(uint32_t slot, bp_container_t* container);
  Status extents(uint32_t slot, uint32_t rank, const int64_t* extents);
  // Runs and waits; signals and `done` as plugin.h says. `run` may be null.
  Status run(const bp_run_t* run);
  // Runs on the exec's own thread, started with the first call.
  Status submit(const bp_run_t* run);
  Status output(uint32_t index, bp_tensor_t& out);
  Status output_container(uint32_t index, bp_container_t*& out);

 private:
  // A program's place in the run.
  struct Step {
    const Program* program = nullptr;
    bp_instance_t* instance = nullptr;
    std::vector<uint32_t> inputs, outputs;  // edges
    bool late = false;                      // its extents are known only when it is its turn
  };
  // A graph output that no island writes: it is an input, a weight, or another output once more.
  struct Copy {
    uint32_t edge;
    uint32_t from_edge;           // or BP_NONE
    const model::Weight* weight;  // or null
  };

  explicit Exec(std::shared_ptr<const Session> session) : session_(std::move(session)) {}
  Status build();
  Result<Edge*> bound_edge(uint32_t slot);
  Status check(const Edge& edge, bp_dtype_t dtype, uint32_t rank, const int64_t* extents) const;
  std::string slot_name(uint32_t slot) const;

  Status plan();                     // everything that follows from the inputs' extents
  Status check_symbols() const;
  Status shape_outputs(Step& step);  // extents of a step's outputs from those of its inputs
  Status place_buffers();
  Status give_buffer(Edge& edge);    // memory of its own, as large as its bytes
  Status bind_step(Step& step);
  Status run_steps(const bp_run_t& options);
  Status run_step(Step& step, const bp_run_t& options);
  Status finish_copies();
  Status execute(const bp_run_t& options);  // waits, runs, signals

  std::shared_ptr<const Session> session_;
  std::vector<Edge> edges_;
  std::vector<Step> steps_;
  std::vector<Copy> copies_;
  std::vector<uint32_t> input_edges_, output_edges_;
  Block arena_;
  bool planned_ = false;
  bool ran_ = false;
  std::atomic<bool> busy_{false};
  std::unique_ptr<Worker> worker_;
};

}  // namespace backplane

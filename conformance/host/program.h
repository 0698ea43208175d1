// SPDX-License-Identifier: Apache-2.0
// A compiled graph and its run state.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "host/memory.h"

namespace backplane::conform {

class Program {
 public:
  // Returns NULL, with the reason in `out_answer`, if the plugin does not compile the graph. `device` and `graph` must
  // outlive the program. `flags` are BP_COMPILE_*. Throws Breach if status and out-argument contradict each other.
  static std::unique_ptr<Program> compile(const Device& device, const Graph& graph, Answer& out_answer,
                                          const bp_cancel_t* cancel = nullptr, uint32_t flags = 0);
  // Like compile(), from a blob that the device wrote. `blob` must outlive the program.
  static std::unique_ptr<Program> restore(const Device& device, const Graph& graph, bp_bytes_t blob,
                                          Answer& out_answer);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  const Device& device() const { return device_; }
  const Graph& graph() const { return graph_; }
  bp_program_t* raw() const { return raw_; }
  // Throws Breach if the plugin returns an error.
  bp_program_info_t info() const;

 private:
  static std::unique_ptr<Program> made(const Device& device, const Graph& graph, bp_program_t* raw,
                                       const Answer& answer);
  Program(const Device& device, const Graph& graph, bp_program_t* raw) : device_(device), graph_(graph), raw_(raw) {}

  const Device& device_;
  const Graph& graph_;
  bp_program_t* raw_;
};

struct RunSettings {
  uint64_t deadline = 0;  // ns on the monotonic clock; 0: none
  const bp_cancel_t* cancel = nullptr;
  std::string* out_done_fault = nullptr;  // if not NULL, receives a description of wrong calls of `done`
};

// The state of a program for one run at a time. [one at a time]
class Instance {
 public:
  // Returns NULL, with the reason in `out_answer`, on failure. `program` must outlive the instance. Throws Breach if
  // the plugin returns BP_OK but no instance.
  static std::unique_ptr<Instance> create(const Program& program, Answer& out_answer);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();

  bp_instance_t* raw() const { return raw_; }
  Answer bind(uint32_t slot, const Memory& memory);
  Answer bind(uint32_t slot, bp_tensor_t tensor);
  // The instance uses `container` until the slot is rebound.
  Answer bind(uint32_t slot, bp_container_t& container);
  // Runs and waits until the run has finished. Outputs whose extents are found during the run are written to the memory
  // from bind_all.
  Answer run(const RunSettings& settings = {});
  // Passes `run` on unchanged and does not wait for the run to finish.
  Answer start(const bp_run_t& run);

  // Binds the inputs, and new memory for scratch and for each output that has no strings and whose extents are known
  // before the run. The memory lives until the next bind_all or the destructor. `extents` are the outputs' extents,
  // which are needed if the graph leaves some unknown. Fails if the program computes other extents.
  Answer bind_all(const std::vector<onnx::Tensor>& inputs, const std::vector<std::vector<int64_t>>& extents = {});
  Memory& input(uint32_t i) { return *inputs_[i]; }
  Memory& output(uint32_t i) { return *outputs_[i]; }
  // Runs with poisoned outputs, then checks canaries, inputs and the calls of `done` and `output`. Returns BP_INTERNAL
  // if a check fails. [after bind_all]
  Answer run_checked(std::vector<onnx::Tensor>& out_outputs, const RunSettings& settings = {});

 private:
  Instance(const Program& program, bp_instance_t* raw) : program_(program), raw_(raw) {}
  const bp_instance_api_t& api() const { return *program_.device().plugin().instance; }
  // Sets bound_: an output is to be bound unless it has strings or its extents are found only during the run.
  Answer find_bound(const std::vector<onnx::Tensor>& inputs, const std::vector<std::vector<int64_t>>& extents);
  static bp_status_t provide_output(void* self, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                                    bp_tensor_t* out_tensor);

  const Program& program_;
  bp_instance_t* raw_;
  std::vector<std::unique_ptr<Memory>> inputs_, outputs_;
  std::vector<bool> bound_;                   // by output; set by bind_all
  std::vector<std::atomic<uint32_t>> asked_;  // by output: calls of bp_run_t.output since bind_all or run_checked
  std::unique_ptr<Memory> scratch_;
};

// Compiles and runs a graph, with poisoned outputs and canaries around all host memory.
Answer compute(const Device& device, const Graph& graph, const std::vector<onnx::Tensor>& inputs,
               std::vector<onnx::Tensor>& out_outputs);

}  // namespace backplane::conform

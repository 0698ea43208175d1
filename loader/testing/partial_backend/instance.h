// SPDX-License-Identifier: Apache-2.0
// A program's instance: converts buffers to pointers for the CPU backend, and causes the scripted faults.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "backplane/sdk/async.hpp"
#include "partial_backend/device.h"

namespace backplane::partial {

class Instance {
 public:
  explicit Instance(const Program& program) : program_(program) {}
  ~Instance();

  bp_instance_t* inner = nullptr;
  const Program& program() const { return program_; }
  void bind(const bp_binding_t& binding, bp_error_t* error);
  // Does the work, or puts it into the run's stream or into the instance's own stream.
  void run(const bp_run_t& run);

 private:
  void work(const bp_run_t& run);
  void check_alignment() const;
  bool is_faulty() const;  // whether the script's fault is in the current run
  void fail(const bp_run_t& run);

  const Program& program_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool in_flight_ = false;
  bp_run_t run_{};       // the run in flight
  uint64_t number_ = 0;  // the current run's number among all runs of the program
  char* scratch_ = nullptr;
  std::map<uint32_t, const char*> bound_;  // the first byte of the memory in each slot
  std::optional<sdk::HostStream> own_;
};

inline Instance& of(bp_instance_t* handle) {
  return *reinterpret_cast<Instance*>(handle);
}

}  // namespace backplane::partial

// SPDX-License-Identifier: Apache-2.0
// A program's run state: buffers made pointers for the CPU backend, faults, and the thread of asynchronous devices.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "partial_backend/device.h"

namespace backplane::partial {

class Instance {
 public:
  explicit Instance(const Program& program) : program_(program) {}
  ~Instance();

  bp_instance_t* inner = nullptr;
  const Program& program() const { return program_; }
  void bind(const bp_binding_t& binding, bp_error_t* error);
  // Does the work, or hands it to the thread.
  void run(const bp_run_t& run, bp_error_t* error);

 private:
  void work(const bp_run_t& run, bp_error_t* error);
  void fail(const bp_run_t& run);
  void loop();

  const Program& program_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<bp_run_t> next_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace backplane::partial

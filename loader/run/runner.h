// SPDX-License-Identifier: Apache-2.0
// One run of a route: islands and transfers as the plan orders them, at once where it allows.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "host/cancel.h"
#include "run/plan.h"
#include "run/route.h"

namespace backplane {

class Runner {
 public:
  // All three outlive it.
  Runner(const Session& session, Route& route, Plan& plan);

  // Allocates nothing unless a step is late.
  Status run(const bp_run_t& options);
  // Where the last run failed: the island, or BP_NONE, and the device, or null.
  uint32_t failed_step() const { return failed_step_; }
  Device* failed_device() const { return failed_device_; }

 private:
  // A step on its way; what bp_run_t's callbacks reach.
  struct Call {
    Runner* runner = nullptr;
    uint32_t step = 0;
    bp_run_t run{};
    uint64_t begin = 0;  // for the trace
    std::atomic<uint32_t> ended{0};
    Status status;
  };

  TaskGraph::Started start(uint32_t task);
  TaskGraph::Started start_step(uint32_t index);
  Status transfer(const Transfer& transfer);
  Status duplicate(const Duplicate& duplicate);
  void end_step(Call& call, Status status);
  void fail(Status status, uint32_t step, Device* device);
  void span(uint32_t kind, uint64_t begin, const Device* device, uint64_t bytes, std::string_view name) const;
  bp_status_t output(Step& step, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                     bp_tensor_t* out);

  static bp_status_t BP_CALL on_output(void* self, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                                       bp_tensor_t* out);
  static void BP_CALL on_done(void* self, bp_status_t status, const bp_error_t* error);

  const Session& session_;
  Route& route_;
  Plan& plan_;
  std::vector<Call> calls_;  // by step
  const bp_run_t* options_ = nullptr;
  bool at_once_ = false;
  bp_cancel_t cancel_;  // follows the framework's, and is set when a part of the run failed
  std::mutex mutex_;
  Status failure_;
  uint32_t failed_step_ = BP_NONE;
  Device* failed_device_ = nullptr;
};

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Runs that end on another thread.
#pragma once

#include <atomic>

#include "session.h"

namespace backplane::python {

// The end of a submitted run. `done` sets it on a thread of the loader, without the interpreter lock, and wakes the
// event loop through a descriptor.
class Completion {
 public:
  Completion();
  Completion(Completion&&) = delete;
  ~Completion();

  int event() const { return event_; }
  bool is_under_way() const { return under_way_; }
  // Whether the device of the last run was abandoned. The run must have ended.
  bool is_abandoned() const { return (flags_ & BP_ERROR_ABANDONED) != 0; }
  // Returns the description of the next run, for Exec::submit. Keeps the run's cancel token alive.
  bp_run_t begin(const RunOptions& how, const Cancel* cancel);
  void refused();
  // Waits for the run's point, after which the exec is free, and throws the run's failure. Once the descriptor is
  // readable, this takes only microseconds: the loader signals the point soon after `done`.
  void finish();
  // Runs `exec` on a thread of the loader, while the calling thread handles signals. An exception of a signal's handler
  // cancels the run, and is thrown when the run has ended. Called with the interpreter lock held.
  void run(Exec& exec, const RunOptions& how);

 private:
  static void done(void* self, bp_status_t status, const bp_error_t* error);

  int event_;
  Semaphore ended_;
  bp_point_t point_{};
  uint64_t value_ = 0;
  std::optional<Cancel> cancel_;
  std::optional<Semaphore> over_;  // reaches 1 at the end of `run`, without its failure
  bool under_way_ = false;
  bp_status_t status_ = BP_OK;
  std::string text_;
  uint64_t node_ = BP_NO_NODE;
  int64_t vendor_code_ = 0;
  uint32_t flags_ = 0;
};

// Runs an exec once, and keeps Ctrl-C working. A run on the calling thread is the fastest, but on the interpreter's
// main thread, no signal is handled until the run has ended. There, the run is made on another thread unless it is
// put into a stream or expected to end soon: SessionState::is_steady() is true, and an earlier run with at least as
// many `bytes` of input ended soon. `quick`, which is kept with the exec, is the largest such number of bytes. Called
// with the interpreter lock held.
void run_exec(const SessionState& state, Exec& exec, const RunOptions& how, uint64_t bytes,
              std::optional<uint64_t>& quick);

}  // namespace backplane::python

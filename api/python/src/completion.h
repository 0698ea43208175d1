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
  // Waits for the run's point, by which the exec is free, and throws the run's failure. Once the descriptor is
  // readable, this takes only microseconds: the loader signals the point soon after `done`.
  void finish();
  // Runs on a thread of the loader, while this one handles signals. The exception of a signal's handler cancels the
  // run, and is thrown when the run has ended. Called with the interpreter lock held.
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
// main thread no signal is handled until it has ended. There, a run is made on another thread unless it will end soon:
// a run with as many bytes of input did, and no loop may take longer this time. `quick`: that number of bytes, kept
// with the exec. Called with the interpreter lock held.
void run_exec(const SessionState& state, Exec& exec, const RunOptions& how, uint64_t bytes,
              std::optional<uint64_t>& quick);

}  // namespace backplane::python

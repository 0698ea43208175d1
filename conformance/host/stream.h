// SPDX-License-Identifier: Apache-2.0
// A device's stream and semaphore, each destroyed by its class's destructor, and the end of a run, reported by `done`.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "host/plugin.h"

namespace backplane::conform {

class Stream {
 public:
  // Returns NULL, with the reason in `out_answer`, on failure. `native` is a stream to import, or NULL to create a
  // stream. Throws Breach if status and out-argument contradict each other.
  static std::unique_ptr<Stream> create(const Device& device, Answer& out_answer, const bp_native_t* native = nullptr);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  bp_stream_t* raw() const { return raw_; }
  // Waits at most until `deadline` on the monotonic clock. The deadline is in nanoseconds.
  Answer wait(uint64_t deadline = BP_FOREVER) const;

 private:
  Stream(const Device& device, bp_stream_t* raw) : device_(device), raw_(raw) {}

  const Device& device_;
  bp_stream_t* raw_;
};

class NativeSemaphore {
 public:
  // Returns NULL, with the reason in `out_answer`, on failure. `value` is the semaphore's initial value. `native` is
  // a semaphore to import, or NULL to create a semaphore. Throws Breach if status and out-argument contradict each
  // other.
  static std::unique_ptr<NativeSemaphore> create(const Device& device, uint64_t value, const bp_native_t* native,
                                                 Answer& out_answer);
  NativeSemaphore(const NativeSemaphore&) = delete;
  NativeSemaphore& operator=(const NativeSemaphore&) = delete;
  ~NativeSemaphore();

  // The point at which the semaphore has reached `value`, in the form that runs accept.
  bp_point_t at(uint64_t value) const { return bp_native_point(raw_, 0, value); }
  bp_native_semaphore_t* raw() const { return raw_; }

 private:
  NativeSemaphore(const Device& device, bp_native_semaphore_t* raw) : device_(device), raw_(raw) {}

  const Device& device_;
  bp_native_semaphore_t* raw_;
};

// Receives `done` of one run. Must live until the run has finished.
class End {
 public:
  // Sets up `run` to call `done` on this object.
  void expect(bp_run_t& run);
  // Returns false if the run has not finished within ten seconds.
  bool wait();
  uint32_t calls();
  bp_status_t status();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t calls_ = 0;
  bp_status_t status_ = BP_OK;
};

}  // namespace backplane::conform

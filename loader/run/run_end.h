// SPDX-License-Identifier: Apache-2.0
// Reports the ends of runs to the framework: its `done` callback, its semaphores, and failures that a later call
// reports.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backplane/plugin.h"
#include "base/status.h"

namespace backplane {

// Calls the framework's `done`, if the run has one.
void call_done(const bp_run_t& run, const Status& status);
// Signals host and native points of the framework. After a failure, host points carry it; native points reach their
// values nevertheless.
void signal_points(std::span<const bp_point_t> points, const Status& status);

// The runs in a stream of the framework, and the first failure in the stream that the framework has not yet seen. The
// loader itself waits for streams, for example before it binds other memory, and the plugin then reports the failure to
// the loader. Therefore `done` and the host points of these runs pass through here, and report such a failure too.
// Holds no reference to the stream or its environment, so that a late `done` of a plugin is harmless. Thread-safe.
class StreamRuns : public std::enable_shared_from_this<StreamRuns> {
  struct Run;

 public:
  // A run that is being passed to the plugin. Call `accept` once the plugin has accepted it; otherwise the destructor
  // discards it.
  class Offer {
   public:
    Offer() = default;
    Offer(Offer&& other) noexcept
        : runs_(std::move(other.runs_)), run_(std::exchange(other.run_, nullptr)), number_(other.number_) {}
    Offer& operator=(Offer&& other) noexcept;
    ~Offer();
    void accept() noexcept;

   private:
    friend StreamRuns;
    std::shared_ptr<StreamRuns> runs_;
    Run* run_ = nullptr;
    uint64_t number_ = 0;  // of `run_`; if Run::number differs, the run has ended and its object was recycled
  };

  // `owner` is for messages: "device 'opencl'".
  explicit StreamRuns(std::string owner);
  ~StreamRuns();

  // Replaces `done` and `self` of `run`, which is a copy of `order` with an id. `run` must not signal the host points
  // of `order`: this object does.
  Offer offer(const bp_run_t& order, bp_run_t& run);
  // Keeps a failure for the next run that has `done`, or for `take_failure`, unless an earlier one is kept.
  void keep(Status failure) noexcept;
  // Keeps BP_RESOURCE_EXHAUSTED without a text, unless a failure is kept already. For a plugin's report that could not
  // be stored for lack of memory: the work may have failed.
  void keep_unknown() noexcept;
  // Returns the failure that is kept, if any, and forgets it.
  Status take_failure();
  // Ends all accepted runs, and those accepted later, with `lost` and BP_ERROR_ABANDONED, because the device was
  // abandoned and may still use their memory. If the plugin ends one of them later, nothing happens.
  void give_up(const Status& lost) noexcept;
  // Counts the work that the plugin has accepted, with and without an Offer.
  void count_accepted() noexcept { ++accepted_; }
  uint64_t accepted() const noexcept { return accepted_; }
  // Notes that the first `count` pieces of accepted work have ended.
  void note_ended(uint64_t count) noexcept;
  // Whether some accepted work is not known to have ended.
  bool any_left() const noexcept { return ended_ < accepted_; }

 private:
  static void done(void* self, bp_status_t code, const bp_error_t* error);
  void keep_locked(Status failure) noexcept;
  // `end` and `end_before_plugin` are called with the lock held. When they return, `end` has released the lock, and
  // `end_before_plugin` holds it.
  void end(Run& run, const Status& status, std::unique_lock<std::mutex>& lock) noexcept;
  static void report(const Run& run, const Status& status) noexcept;
  void end_before_plugin(Run& run, std::unique_lock<std::mutex>& lock) noexcept;
  void recycle(Run& run) noexcept;
  void recycle_locked(Run& run) noexcept;

  const std::string owner_;
  std::mutex mutex_;
  std::shared_ptr<const Status> kept_;
  std::shared_ptr<const Status> lost_;  // the failure of runs in flight; set once the device is abandoned
  std::vector<std::unique_ptr<Run>> runs_;
  std::vector<Run*> unused_;
  uint64_t last_number_ = 0;
  std::atomic<uint64_t> accepted_{0}, ended_{0};
};

}  // namespace backplane

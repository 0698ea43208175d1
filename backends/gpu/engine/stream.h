// SPDX-License-Identifier: Apache-2.0
// Streams and semaphores of a device: command queues, and increasing counters.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backplane/sdk.hpp"
#include "engine/abandonment.h"
#include "engine/driver.h"

namespace backplane::gpu {

// Whether `a` and `b` are the same queue of the driver.
inline bool same(const CommandQueue& a, const CommandQueue& b) {
  return &a == &b || a.native().handle == b.native().handle;
}

// A run or a copy whose commands are in a stream. `outcome` returns its failure, or nullopt for success; it must be
// called only after the commands have ended.
class Flight {
 public:
  // `conclude` is called once, when the commands have ended, and returns the failure or nullopt. `id` is the run's id,
  // `last` the event of its last command, if there is one.
  Flight(std::function<std::optional<sdk::Error>()> conclude, uint64_t id, Event last = {})
      : conclude_(std::move(conclude)), id_(id), last_(std::move(last)) {}
  // Adds the wait for the points (values of semaphores) that the run waits for. If the wait fails, the run has failed.
  void waits(std::shared_ptr<Flight> wait) { wait_ = std::move(wait); }
  // Makes this flight also report the failures of earlier flights of its stream.
  void follows(std::vector<std::shared_ptr<Flight>> earlier) { earlier_ = std::move(earlier); }

  std::optional<sdk::Error> outcome();
  // Determines whether the run itself failed, regardless of the wait for its points (see `waits`). Unlike `outcome`,
  // this can be called after those points have been destroyed.
  void conclude();
  // The first failure among the earlier flights and this one, with the id of the failed run. Like `outcome`, must be
  // called only after the commands have ended.
  std::optional<sdk::Error> first_failure();
  // Records a failure that the driver reported for the stream, unless this flight or an earlier one has failed.
  void fail(const sdk::Error& failure);
  bool concluded();
  // Whether this flight and the earlier ones are known to have succeeded. Does not wait.
  bool ended_well();

 private:
  void conclude_locked();

  std::mutex mutex_;
  std::function<std::optional<sdk::Error>()> conclude_;
  std::optional<sdk::Error> failure_;
  std::shared_ptr<Flight> wait_;  // until the outcome is known
  const uint64_t id_;
  const Event last_;

  std::mutex first_mutex_;
  std::vector<std::shared_ptr<Flight>> earlier_;  // until their failure is known
  std::optional<sdk::Error> first_failure_;
  bool first_known_ = false;
};
using Flights = std::vector<std::shared_ptr<Flight>>;  // in the order of their stream

class Stream final : public sdk::Stream {
 public:
  Stream(Queue queue, std::shared_ptr<Abandonment> abandonment)
      : queue_(std::move(queue)), abandonment_(std::move(abandonment)) {}
  ~Stream() override;  // waits for all work, and for threads that still report completions of this stream
  const Queue& queue() const { return queue_; }
  void wait(uint64_t deadline) override;
  bp_native_t native() override { return queue_->native(); }

  // Makes later commands in the queue wait for the points of `sync` that are not reached yet: on the device if the
  // events of all of them are known, otherwise on a host thread. Returns the wait as a flight, or NULL if `sync` has no
  // points to wait for. Throws if all points are reached and a host point has failed.
  std::shared_ptr<Flight> wait_for(const std::shared_ptr<const sdk::RunSync>& sync);
  // Called when the commands of `flight` are in the queue; `wait` is what `wait_for` returned for the run. Enqueues the
  // run's signals and, when the run has ended, reports its end to `done` and to host points. A flight without `done` is
  // kept until Stream::wait or the `done` of a later run reports it, or until it is known to have succeeded.
  void follow(const std::shared_ptr<const sdk::RunSync>& sync, std::shared_ptr<Flight> wait,
              std::shared_ptr<Flight> flight) noexcept;

 private:
  // Counts the threads, of this backend or of the driver, that wait or report an end for this stream.
  struct Reports {
    std::mutex mutex;
    std::condition_variable changed;
    uint32_t count = 0;
  };
  void begin_callback();
  static void end_callback(Reports& reports);
  // Calls `end` on another thread when the work in the queue has ended. Used where the driver cannot report that; the
  // caller's thread must not wait, because the work may wait for something that this thread does next.
  void when_finished(std::function<void()> end) noexcept;

  Queue queue_;
  const std::shared_ptr<Abandonment> abandonment_;
  std::mutex mutex_;
  Flights unreported_;
  Flights spare_;  // empty, with reserved capacity, so that `follow` need not allocate
  static constexpr size_t kKept = 64;
  size_t tidied_at_ = kKept;  // size of `unreported_` at which flights that ended well are dropped
  std::shared_ptr<Reports> reports_ = std::make_shared<Reports>();
};

// The stream of a run, or NULL.
inline Stream* stream_of(const bp_run_t& run) {
  return run.stream != nullptr ? static_cast<Stream*>(sdk::stream_of(run.stream)) : nullptr;
}

// A timeline semaphore. The host keeps its value, because in some drivers an event that reports a failure aborts the
// process (decision 0008). For signals that are pending in streams it also keeps the events, so that other streams can
// wait for them on the device. Thread-safe.
class Timeline final : public sdk::NativeSemaphore {
 public:
  explicit Timeline(std::shared_ptr<Abandonment> abandonment) : abandonment_(std::move(abandonment)) {}
  // The semaphore reaches 1 when the event has ended.
  Timeline(std::shared_ptr<Abandonment> abandonment, const Event& event);

  // Throws if the device is abandoned meanwhile.
  bool wait(uint64_t value, uint64_t deadline) override;
  void signal(uint64_t value, const sdk::Error* failure) override { state_->numbers.signal(value, failure); }
  bool follows_event() const override { return follows_event_; }
  uint64_t value() override { return state_->numbers.value(); }
  std::optional<sdk::Error> failure(uint64_t value) override;

  // The semaphore reaches `value` when the event has ended. The failure at that value is the first failure of
  // `flights`.
  void signal_after(const Event& event, uint64_t value, Flights flights);
  // Returns a function that reports `value` as reached, or as failed, later; it may be called after the semaphore has
  // been destroyed.
  std::function<void(const sdk::Error* failure)> signaller(uint64_t value);
  // The event after which the semaphore has `value`, or an empty one if no pending signal is known for it.
  Event pending(uint64_t value) const;

 private:
  struct PendingSignal {
    uint64_t first, last;  // the values that this signal makes the semaphore reach
    Event event;
    Flights flights;
  };
  // Outlives the semaphore while an event is pending.
  struct State {
    sdk::HostTimeline numbers;
    std::mutex mutex;
    std::deque<PendingSignal> pending;  // the newest signals, ended or not
  };
  static constexpr size_t kKept = 16;
  static void reach(const std::shared_ptr<State>& state, const Event& event, uint64_t value);

  const std::shared_ptr<Abandonment> abandonment_;
  const bool follows_event_ = false;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

inline Timeline* timeline_of(const bp_point_t& point) {
  return static_cast<Timeline*>(sdk::semaphore_of(bp_point_native(&point)));
}

}  // namespace backplane::gpu

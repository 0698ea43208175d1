// SPDX-License-Identifier: Apache-2.0
#include "run/run_end.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/keep.h"
#include "host/semaphore.h"
#include "run/framework_stream.h"

namespace backplane {

void call_done(const bp_run_t& run, const Status& status) {
  if (!run.done) return;
  std::string text;
  try {
    text = status.text();
  } catch (const std::bad_alloc&) {  // the callback gets the code alone
  }
  bp_error_t error{};
  error.size = sizeof error;
  error.text = text.data();
  error.text_capacity = text.size();
  error.node = BP_NO_NODE;
  status.write(&error);
  run.done(run.self, status.code(), &error);
}

void signal_points(std::span<const bp_point_t> points, const Status& status) {
  for (const bp_point_t& point : points) {
    if (point.kind == BP_POINT_NATIVE) {
      (void)semaphore_of(point).signal(point.value);  // that signaling is supported was checked before the run
      continue;
    }
    bp_semaphore_t& semaphore = *bp_point_host(&point);
    status.ok() ? semaphore.signal(point.value) : semaphore.fail(point.value, status);
  }
}

struct StreamRuns::Run {
  std::shared_ptr<StreamRuns> runs;  // null while this object is not in use
  bp_run_t order{};                  // the framework's; only `done` and `self` are valid
  std::vector<bp_point_t> host_points;
  uint64_t number = 0;  // identifies this use of the object
  uint64_t id = 0;      // the id that the plugin has for the run
  bool accepted = false;
  bool ended = false;     // a thread is reporting the end, or has reported it
  bool reported = false;  // the end has been reported; set only if the loader ended the run before the plugin did
  bool returned = false;  // the plugin has ended the run too, after the loader did
};

namespace {

// Created when the loader is loaded: at its first use there may be no memory. Never destroyed, because a plugin may end
// a run late.
const Status& out_of_memory = *new Status(BP_RESOURCE_EXHAUSTED, {});
const Status& abandoned_device =
    *new Status(Status(BP_DEVICE_LOST, {}).with_flags(BP_ERROR_DEVICE_LOST | BP_ERROR_ABANDONED));

// The next two functions do not throw: if memory is exhausted, they return a failure that was created when the loader
// was loaded.
std::shared_ptr<const Status> no_memory() noexcept {
  return {std::shared_ptr<const Status>(), &out_of_memory};
}
std::shared_ptr<const Status> abandoned(const Status& lost) noexcept try {
  return std::make_shared<const Status>(Status(lost).with_flags(lost.flags() | BP_ERROR_ABANDONED));
} catch (const std::bad_alloc&) {  // the framework must learn that the memory is still in use
  return {std::shared_ptr<const Status>(), &abandoned_device};
}

// Copies or moves the failure.
template <class Failure>
std::shared_ptr<const Status> shared(Failure&& failure) noexcept {
  try {
    return std::make_shared<const Status>(std::forward<Failure>(failure));
  } catch (...) {
    return no_memory();
  }
}

}  // namespace

StreamRuns::Offer& StreamRuns::Offer::operator=(Offer&& other) noexcept {
  std::swap(runs_, other.runs_);
  std::swap(run_, other.run_);
  std::swap(number_, other.number_);
  return *this;
}

StreamRuns::Offer::~Offer() {
  if (!run_) return;
  const std::lock_guard lock(runs_->mutex_);
  if (run_->number == number_) runs_->recycle_locked(*run_);  // otherwise the plugin refused the run but has ended it
}

void StreamRuns::Offer::accept() noexcept {
  Run* const run = std::exchange(run_, nullptr);
  if (!run) return;
  std::unique_lock lock(runs_->mutex_);
  if (run->number != number_) return;  // the run has ended already
  run->accepted = true;
  if (runs_->lost_ && !run->ended) runs_->end_before_plugin(*run, lock);
}

StreamRuns::StreamRuns(std::string owner) : owner_(std::move(owner)) {}
StreamRuns::~StreamRuns() = default;

StreamRuns::Offer StreamRuns::offer(const bp_run_t& order, bp_run_t& run) {
  Offer offer;
  offer.runs_ = shared_from_this();
  const std::lock_guard lock(mutex_);
  if (unused_.empty()) {
    unused_.reserve(runs_.size() + 1);  // so that `recycle` does not allocate
    runs_.push_back(std::make_unique<Run>());
    unused_.push_back(runs_.back().get());
  }
  Run& next = *unused_.back();
  next.host_points.clear();  // an earlier call may have run out of memory below
  for (uint32_t i = 0; i < order.signal_count; ++i)
    if (order.signals[i].kind == BP_POINT_HOST) next.host_points.push_back(order.signals[i]);
  unused_.pop_back();
  next.runs = offer.runs_;
  next.order = order;
  next.number = offer.number_ = ++last_number_;
  next.id = run.id;
  next.accepted = next.ended = next.reported = next.returned = false;
  offer.run_ = &next;
  run.done = done;
  run.self = &next;
  return offer;
}

void StreamRuns::keep(Status failure) noexcept {
  if (failure.ok()) return;
  const std::lock_guard lock(mutex_);
  keep_locked(std::move(failure));
}

void StreamRuns::keep_locked(Status failure) noexcept {
  if (!kept_) kept_ = shared(std::move(failure));
}

void StreamRuns::keep_unknown() noexcept {
  const std::lock_guard lock(mutex_);
  if (!kept_) kept_ = no_memory();
}

Status StreamRuns::take_failure() {
  const std::lock_guard lock(mutex_);
  Status failure = kept_ ? *kept_ : Status();  // without memory for the copy, it stays kept
  kept_ = nullptr;
  return failure;
}

void StreamRuns::give_up(const Status& lost) noexcept {
  bool any = false;
  for (;;) {
    std::unique_lock lock(mutex_);
    if (!lost_) lost_ = abandoned(lost);
    const auto is_left = [](const std::unique_ptr<Run>& run) { return run->runs && run->accepted && !run->ended; };
    const auto found = std::ranges::find_if(runs_, is_left);
    if (found == runs_.end()) break;
    any = true;
    end_before_plugin(**found, lock);
  }
  if (any) keep_for_good(shared_from_this());  // the plugin may still end these runs
}

void StreamRuns::done(void* self, bp_status_t code, const bp_error_t* error) {
  Run& run = *static_cast<Run*>(self);
  const std::shared_ptr<StreamRuns> runs = run.runs;
  if (!runs) return;  // a faulty plugin has ended this run before
  std::unique_lock lock(runs->mutex_);
  if (run.ended) {
    run.returned = true;
    if (run.reported) runs->recycle_locked(run);
    return;
  }
  Status reported;
  const Status* status = &reported;
  try {
    if (code != BP_OK) reported = Status::reported(code, error).context(runs->owner_);
  } catch (...) {
    status = &out_of_memory;
  }
  runs->end(run, *status, lock);
  runs->recycle(run);
}

void StreamRuns::note_ended(uint64_t count) noexcept {
  uint64_t known = ended_;
  while (known < count && !ended_.compare_exchange_weak(known, count)) {
  }
}

// Reports that the run was abandoned, even if an earlier failure is kept: otherwise the framework would free memory
// that the device may still use. Recycles the run only once its points have been signaled, even if the plugin ends it
// in the meantime.
void StreamRuns::end_before_plugin(Run& run, std::unique_lock<std::mutex>& lock) noexcept {
  run.ended = true;
  const std::shared_ptr<const Status> lost = lost_;
  lock.unlock();
  report(run, *lost);
  lock.lock();
  run.reported = true;
  if (run.returned) recycle_locked(run);
}

void StreamRuns::end(Run& run, const Status& status, std::unique_lock<std::mutex>& lock) noexcept {
  run.ended = true;
  if (!status.ok()) {
    try {
      keep_locked(Status(status).with_run(status.run() ? status.run() : run.id));
    } catch (...) {
      if (!kept_) kept_ = no_memory();
    }
  }
  std::shared_ptr<const Status> seen = kept_;
  if (run.order.done) kept_ = nullptr;  // without `done`, the failure stays kept, although the run's host points fail
  lock.unlock();
  if (seen) {
    try {  // a failure of another run gets BP_ERROR_OF_RUN
      seen = shared(seen->run() == run.id ? Status(*seen).with_run(0)
                                          : Status(*seen).with_flags(seen->flags() | BP_ERROR_OF_RUN));
    } catch (...) {
      seen = no_memory();
    }
  }
  const Status success;
  report(run, seen ? *seen : success);
}

void StreamRuns::report(const Run& run, const Status& status) noexcept {
  call_done(run.order, status);
  signal_points(run.host_points, status);
}

void StreamRuns::recycle(Run& run) noexcept {
  const std::shared_ptr<StreamRuns> last_reference = run.runs;  // released after the lock
  const std::lock_guard lock(mutex_);
  recycle_locked(run);
}

// The caller holds the lock and a reference to this object.
void StreamRuns::recycle_locked(Run& run) noexcept {
  run.runs = nullptr;
  run.host_points.clear();
  run.number = 0;
  unused_.push_back(&run);
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
#include "engine/stream.h"

#include <algorithm>
#include <string>
#include <thread>

#include "engine/device.h"

namespace backplane::gpu {
// ---- streams --------------------------------------------------------------------------------------------------------

void Flight::conclude_locked() {
  if (!conclude_) return;
  failure_ = conclude_();
  conclude_ = nullptr;
}

void Flight::conclude() {
  const std::lock_guard lock(mutex_);
  conclude_locked();
}

std::optional<sdk::Error> Flight::outcome() {
  const std::lock_guard lock(mutex_);
  conclude_locked();
  if (wait_) {
    if (std::optional<sdk::Error> waited = wait_->outcome()) failure_ = std::move(waited);
    wait_ = nullptr;
  }
  return failure_;
}

namespace {

std::optional<sdk::Error> first_failure(const Flights& flights) {
  std::optional<sdk::Error> first;
  for (const auto& flight : flights) {
    std::optional<sdk::Error> failure = flight->first_failure();  // called for every flight, as it also concludes it
    if (!first) first = std::move(failure);
  }
  return first;
}

}  // namespace

std::optional<sdk::Error> Flight::first_failure() {
  const std::lock_guard lock(first_mutex_);
  if (first_known_) return first_failure_;
  std::optional<sdk::Error> own = outcome();
  if (own) own->run = id_;
  first_failure_ = gpu::first_failure(earlier_);
  if (!first_failure_) first_failure_ = std::move(own);
  earlier_.clear();
  first_known_ = true;
  return first_failure_;
}

void Flight::fail(const sdk::Error& failure) {
  if (first_failure()) return;
  const std::lock_guard lock(first_mutex_);
  first_failure_ = failure;
  first_failure_->run = id_;
}

bool Flight::concluded() {
  const std::lock_guard lock(mutex_);
  return conclude_ == nullptr;
}

bool Flight::ended_well() {
  return (concluded() || (last_ != nullptr && last_->ended_well())) && !first_failure();
}

Stream::~Stream() {
  {
    std::unique_lock lock(reports_->mutex);
    reports_->changed.wait(lock, [this] { return reports_->count == 0; });
  }
  queue_->finish_noexcept();
  // Determines the outcomes now: when runs in other streams query them later, the points that these flights waited for
  // may have been destroyed.
  static_cast<void>(sdk::caught([this] { static_cast<void>(first_failure(unreported_)); }));
}

void Stream::wait(uint64_t deadline) {
  if (queue_->is_captured())
    throw sdk::Error(BP_BAD_STATE, "the framework is capturing the stream: end the capture before waiting for it");
  struct End {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
    std::optional<sdk::Error> failure;
  };
  const auto end = std::make_shared<End>();  // shared: the driver may call back after this wait has timed out
  Flights flights;
  {
    const std::lock_guard lock(mutex_);
    flights = unreported_;
  }
  queue_->when_done([end](const sdk::Error* failure) {
    const std::lock_guard lock(end->mutex);
    end->ended = true;
    if (failure != nullptr) end->failure = *failure;
    end->changed.notify_all();
  });
  const Abandonment::Waiter waiter(*abandonment_, [end] {
    const std::lock_guard lock(end->mutex);
    end->changed.notify_all();
  });
  std::unique_lock lock(end->mutex);
  if (!sdk::wait_until(end->changed, lock, deadline, [&] { return end->ended || abandonment_->is_set(); }))
    throw sdk::Error(BP_TIMED_OUT, "the deadline passed before the work of the stream ended");
  if (!end->ended) abandonment_->check();
  {
    const std::lock_guard unreported(mutex_);
    std::erase_if(unreported_, [&](const auto& flight) {
      return std::find(flights.begin(), flights.end(), flight) != flights.end();
    });
  }
  std::optional<sdk::Error> failure = first_failure(flights);
  if (!failure) failure = end->failure;
  if (!failure) return;
  failure->flags |= BP_ERROR_OF_RUN;
  throw sdk::Error(*failure);
}

std::shared_ptr<Flight> Stream::wait_for(const std::shared_ptr<const sdk::RunSync>& sync) {
  {
    const std::lock_guard lock(mutex_);
    // Bounds the list, as the framework may wait by other means and never call `wait`. The next cleanup is due when the
    // list has doubled: a cleanup at every run would query the driver about each flight every time.
    if (unreported_.size() >= tidied_at_) {
      std::erase_if(unreported_, [](const auto& flight) { return flight->ended_well(); });
      tidied_at_ = std::max(kKept, 2 * unreported_.size());
    }
    // Allocates what `follow` needs, as `follow` must not fail.
    if (unreported_.capacity() == unreported_.size()) unreported_.reserve(2 * unreported_.size() + 2);
    spare_.reserve(1);
  }
  if (sync->waits().empty()) return nullptr;
  std::vector<Event> events;
  bool on_host = false;
  for (const bp_point_t& point : sync->waits()) {
    Timeline* const timeline = timeline_of(point);
    if (timeline != nullptr && timeline->value() >= point.value) continue;
    Event event = timeline != nullptr ? timeline->pending(point.value) : Event();
    if (event)
      events.push_back(std::move(event));
    else
      on_host = true;
  }
  const auto failure = std::make_shared<std::optional<sdk::Error>>();  // why the wait for the points failed
  if (on_host && sync->must_wait()) {
    std::shared_ptr<Gate> gate = queue_->hold();
    begin_callback();
    try {
      // The work runs even if the wait fails: its results are garbage, and the end reports the failure.
      std::thread([gate, reports = reports_, abandonment = abandonment_, sync, failure]() mutable {
        *failure = sdk::caught([&] { sync->wait(); });
        if (!abandonment->is_set()) gate->open();
        gate = nullptr;  // before the stream may be destroyed, and the device closed
        end_callback(*reports);
      }).detach();
    } catch (...) {
      gate->open();
      end_callback(*reports_);
      throw;
    }
  } else {
    if (on_host) sync->wait();  // throws if a point has failed
    if (!events.empty()) queue_->wait(events);
  }
  return std::make_shared<Flight>([sync, failure] { return *failure ? *failure : sync->dependency(); }, sync->run().id);
}

void Stream::follow(const std::shared_ptr<const sdk::RunSync>& sync, std::shared_ptr<Flight> wait,
                    std::shared_ptr<Flight> flight) noexcept {
  const bool has_done = sync->run().done != nullptr;
  flight->waits(std::move(wait));
  bool reports = has_done;
  for (const bp_point_t& point : sync->signals()) {
    Timeline* const timeline = timeline_of(point);
    reports = reports || timeline == nullptr;
    if (timeline == nullptr) continue;
    const auto signal = [&] {
      Flights flights;
      {
        const std::lock_guard lock(mutex_);
        flights = unreported_;
      }
      flights.push_back(flight);
      timeline->signal_after(queue_->mark(), point.value, std::move(flights));
    };
    if (!sdk::caught(signal)) continue;
    when_finished([reach = timeline->signaller(point.value), flight] {
      const std::optional<sdk::Error> failure = flight->outcome();
      reach(failure ? &*failure : nullptr);
    });
  }
  {
    const std::lock_guard lock(mutex_);
    if (reports) flight->follows(std::exchange(unreported_, std::exchange(spare_, {})));
    if (!has_done) unreported_.push_back(flight);
  }
  if (!reports) {
    // Flushes after the signals are enqueued, as other queues and threads wait for them without flushing this queue.
    if (sdk::caught([this] { queue_->flush(); })) when_finished([] {});
    return;
  }
  begin_callback();
  const auto report = [sync, flight, reports = reports_](const sdk::Error* ended) {
    std::optional<sdk::Error> failure = flight->first_failure();
    if (!failure && ended != nullptr) {
      flight->fail(*ended);
      failure = *ended;
    }
    if (failure && failure->run == sync->run().id) failure->run = 0;
    sync->end(failure ? &*failure : nullptr);
    end_callback(*reports);
  };
  if (sdk::caught([&] { queue_->when_done(report); })) when_finished([report] { report(nullptr); });
}

void Stream::when_finished(std::function<void()> end) noexcept {
  begin_callback();
  auto finish = [queue = queue_, reports = reports_, end = std::move(end)]() mutable {
    queue->finish_noexcept();
    end();
    queue = nullptr;  // before the stream may be destroyed, and the device closed
    end = nullptr;
    end_callback(*reports);
  };
  // If no thread can be started, the caller's thread waits: nothing else can report the end.
  if (sdk::caught([&] { std::thread(finish).detach(); })) finish();
}

void Stream::begin_callback() {
  const std::lock_guard lock(reports_->mutex);
  ++reports_->count;
}

void Stream::end_callback(Reports& reports) {
  const std::lock_guard lock(reports.mutex);
  --reports.count;
  reports.changed.notify_all();  // under the lock: the stream may be destroyed right afterwards
}

std::unique_ptr<sdk::Stream> Device::stream(const bp_stream_create_t& how) {
  if (how.native == nullptr) return std::make_unique<Stream>(driver().queue(), abandonment_);
  return std::make_unique<Stream>(driver().import_queue(sdk::read(how.native, "native")), abandonment_);
}

// ---- semaphores -----------------------------------------------------------------------------------------------------

Timeline::Timeline(std::shared_ptr<Abandonment> abandonment, const Event& event)
    : abandonment_(std::move(abandonment)), follows_event_(true) {
  reach(state_, event, 1);
}

bool Timeline::wait(uint64_t value, uint64_t deadline) {
  if (deadline == 0 || state_->numbers.value() >= value) return state_->numbers.wait(value, 0);
  const Abandonment::Waiter waiter(*abandonment_, [state = state_] { state->numbers.wake(); });
  if (state_->numbers.wait(value, deadline, abandonment_->is_set())) return true;
  abandonment_->check();
  return false;
}

void Timeline::reach(const std::shared_ptr<State>& state, const Event& event, uint64_t value) {
  // The driver may call back after the semaphore has been destroyed or, having passed the value, has dropped the event.
  event->when_ended([state, event, value](const sdk::Error* failure) {
    if (failure == nullptr) return state->numbers.signal(value, nullptr);
    const sdk::Error dependency(BP_DEPENDENCY_FAILED, "the event of a semaphore ended with a failure", BP_NO_NODE,
                                failure->vendor_code);
    state->numbers.signal(value, &dependency);
  });
}

std::function<void(const sdk::Error*)> Timeline::signaller(uint64_t value) {
  return [state = state_, value](const sdk::Error* failure) {
    static_cast<void>(sdk::caught([&] { state->numbers.signal(value, failure); }));
  };
}

void Timeline::signal_after(const Event& event, uint64_t value, Flights flights) {
  {
    const std::lock_guard lock(state_->mutex);
    std::deque<PendingSignal>& pending = state_->pending;
    while (pending.size() >= kKept && pending.front().last <= state_->numbers.value()) pending.pop_front();
    const uint64_t before = pending.empty() ? state_->numbers.value() : pending.back().last;
    pending.push_back({before + 1, value, event, std::move(flights)});
  }
  reach(state_, event, value);
}

Event Timeline::pending(uint64_t value) const {
  const std::lock_guard lock(state_->mutex);
  for (const PendingSignal& pending : state_->pending)
    if (pending.first <= value && value <= pending.last) return pending.event;
  return {};
}

std::optional<sdk::Error> Timeline::failure(uint64_t value) {
  Flights flights;
  {
    const std::lock_guard lock(state_->mutex);
    for (const PendingSignal& pending : state_->pending) {
      if (value < pending.first || value > pending.last) continue;
      flights = pending.flights;
      break;
    }
  }
  if (!flights.empty()) return first_failure(flights);
  return state_->numbers.failure(value);
}

std::unique_ptr<sdk::NativeSemaphore> Device::semaphore(const bp_semaphore_create_t& how) {
  if (how.native == nullptr) {
    auto made = std::make_unique<Timeline>(abandonment_);
    made->signal(how.value, nullptr);
    return made;
  }
  return std::make_unique<Timeline>(abandonment_, driver().import_event(sdk::read(how.native, "native")));
}

}  // namespace backplane::gpu

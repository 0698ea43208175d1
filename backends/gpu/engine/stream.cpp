// SPDX-License-Identifier: Apache-2.0
#include "engine/stream.h"

#include <algorithm>
#include <string>
#include <thread>

#include "engine/device.h"

namespace backplane::gpu {
// ---- streams --------------------------------------------------------------------------------------------------------

std::optional<sdk::Error> Flight::outcome() {
  const std::lock_guard lock(mutex_);
  if (conclude_) {
    failure_ = conclude_();
    conclude_ = nullptr;
  }
  return failure_;
}

bool Flight::concluded() {
  const std::lock_guard lock(mutex_);
  return conclude_ == nullptr;
}

bool Flight::ended_well() {
  return last_ != nullptr && last_->ended_well() && !outcome();
}

Stream::~Stream() {
  std::unique_lock lock(reports_->mutex);
  reports_->changed.wait(lock, [this] { return reports_->count == 0; });
}

std::vector<std::shared_ptr<Flight>> Stream::take_unreported() {
  const std::lock_guard lock(mutex_);
  return std::exchange(unreported_, {});
}

namespace {

// The first failure among the flights, with the id of its run; nullopt if there is none.
std::optional<sdk::Error> first_failure(const std::vector<std::shared_ptr<Flight>>& flights) {
  std::optional<sdk::Error> first;
  for (const auto& flight : flights) {
    std::optional<sdk::Error> failure = flight->outcome();  // for each, as this also concludes it
    if (!failure || first) continue;
    first = std::move(failure);
    first->run = flight->id();
  }
  return first;
}

}  // namespace

void Stream::wait(uint64_t deadline) {
  struct End {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
    std::optional<sdk::Error> failure;
  };
  const auto end = std::make_shared<End>();  // the driver may call after this wait has timed out
  std::vector<std::shared_ptr<Flight>> flights;
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
  std::unique_lock lock(end->mutex);
  if (!sdk::wait_until(end->changed, lock, deadline, [&] { return end->ended; }))
    throw sdk::Error(BP_TIMED_OUT, "the deadline passed before the work of the stream ended");
  {
    const std::lock_guard unreported(mutex_);
    std::erase_if(unreported_, [&](const auto& flight) {
      return std::find(flights.begin(), flights.end(), flight) != flights.end();
    });
  }
  if (const auto failure = first_failure(flights)) throw sdk::Error(*failure);
  if (end->failure) throw sdk::Error(*end->failure);
}

std::shared_ptr<Flight> Stream::wait_for(const std::shared_ptr<const sdk::RunSync>& sync) {
  {
    const std::lock_guard lock(mutex_);
    // Bounds the list, as the framework may wait by other means and never call `wait`. The next attempt is at twice the
    // runs that remain: one at every run would ask the driver for each of them again.
    if (unreported_.size() >= tidied_at_) {
      std::erase_if(unreported_, [](const auto& flight) { return flight->ended_well(); });
      tidied_at_ = std::max(kKept, 2 * unreported_.size());
    }
    // For `follow`, which must not fail.
    if (unreported_.capacity() < unreported_.size() + 2) unreported_.reserve(2 * unreported_.size() + 2);
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
  const auto failure = std::make_shared<std::optional<sdk::Error>>();  // of the wait
  if (on_host && sync->must_wait()) {
    std::shared_ptr<Gate> gate = queue_->hold();
    begin_callback();
    try {
      // The work runs even if the wait fails: its results are garbage, and the end reports the failure.
      std::thread([gate, reports = reports_, sync, failure] {
        *failure = sdk::caught([&] { sync->wait(); });
        gate->open();
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
  bool reports = sync->run().done != nullptr;
  for (const bp_point_t& point : sync->signals()) {
    Timeline* const timeline = timeline_of(point);
    reports = reports || timeline == nullptr;
    if (timeline == nullptr || !sdk::caught([&] { timeline->signal_after(queue_->mark(), point.value, flight); }))
      continue;
    queue_->finish_noexcept();
    const std::optional<sdk::Error> failure = flight->outcome();
    static_cast<void>(sdk::caught([&] { timeline->signal(point.value, failure ? &*failure : nullptr); }));
  }
  {
    const std::lock_guard lock(mutex_);
    if (wait) unreported_.push_back(std::move(wait));
    unreported_.push_back(std::move(flight));
  }
  if (!reports) {
    // After the signals: other queues and threads may wait for them without a flush of their own.
    if (sdk::caught([this] { queue_->flush(); })) queue_->finish_noexcept();
    return;
  }
  begin_callback();
  const auto report = [sync, flights = take_unreported(), reports = reports_](const sdk::Error* ended) {
    std::optional<sdk::Error> failure = first_failure(flights);
    if (!failure && ended != nullptr) failure = *ended;
    if (failure && failure->run == sync->run().id) failure->run = 0;
    sync->end(failure ? &*failure : nullptr);
    end_callback(*reports);
  };
  if (sdk::caught([&] { queue_->when_done(report); })) {
    queue_->finish_noexcept();
    report(nullptr);
  }
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
  if (how.native == nullptr) return std::make_unique<Stream>(driver().queue());
  return std::make_unique<Stream>(driver().import_queue(sdk::read(how.native, "native")));
}

// ---- semaphores -----------------------------------------------------------------------------------------------------

Timeline::Timeline(const Event& event) {
  reach(state_, event, 1);
}

void Timeline::reach(const std::shared_ptr<State>& state, const Event& event, uint64_t value) {
  // The driver may make this call after the semaphore was destroyed.
  event->when_ended([state, value](const sdk::Error* failure) {
    if (failure == nullptr) return state->numbers.signal(value, nullptr);
    const sdk::Error dependency(BP_DEPENDENCY_FAILED, "the event of a semaphore ended with a failure", BP_NO_NODE,
                                failure->vendor_code);
    state->numbers.signal(value, &dependency);
  });
}

void Timeline::signal_after(const Event& event, uint64_t value, std::shared_ptr<Flight> flight) {
  {
    const std::lock_guard lock(state_->mutex);
    std::deque<PendingSignal>& pending = state_->pending;
    while (pending.size() >= kKept && pending.front().last <= state_->numbers.value()) pending.pop_front();
    const uint64_t before = pending.empty() ? state_->numbers.value() : pending.back().last;
    pending.push_back({before + 1, value, event, std::move(flight)});
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
  std::shared_ptr<Flight> flight;
  {
    const std::lock_guard lock(state_->mutex);
    for (const PendingSignal& pending : state_->pending) {
      if (value < pending.first || value > pending.last) continue;
      flight = pending.flight;
      break;
    }
  }
  if (flight) return flight->outcome();
  return state_->numbers.failure(value);
}

std::unique_ptr<sdk::NativeSemaphore> Device::semaphore(const bp_semaphore_create_t& how) {
  if (how.native == nullptr) {
    auto made = std::make_unique<Timeline>();
    made->signal(how.value, nullptr);
    return made;
  }
  return std::make_unique<Timeline>(driver().import_event(sdk::read(how.native, "native")));
}

}  // namespace backplane::gpu

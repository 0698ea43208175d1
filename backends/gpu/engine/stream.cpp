// SPDX-License-Identifier: Apache-2.0
#include "engine/stream.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "engine/device.h"

namespace backplane::opencl {
namespace {

template <class T, class Object>
T queried(cl_int (*ask)(Object, cl_uint, size_t, void*, size_t*), Object object, cl_uint what, std::string_view name) {
  T value{};
  check(ask(object, what, sizeof value, &value, nullptr), name);
  return value;
}

// An event that ends when all that the queue holds now has.
Event mark(cl_command_queue queue) {
  cl_event event = nullptr;
  check(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event), "marker");
  return Event(event);
}

// An event that the host ends.
Event open_gate(cl_command_queue queue) {
  cl_int status = CL_SUCCESS;
  const cl_event event = clCreateUserEvent(
      queried<cl_context>(clGetCommandQueueInfo, queue, CL_QUEUE_CONTEXT, "context of a queue"), &status);
  check(status, "event of the host");
  return Event(event);
}

}  // namespace

// ---- streams --------------------------------------------------------------------------------------------------------

void when_done(cl_command_queue queue, std::function<void(cl_int)> end) {
  struct Ending {
    std::function<void(cl_int)> end;
    Event marker;
    std::atomic<bool> settled{false};  // `end` was called, or never will be
  };
  const auto ending = std::make_shared<Ending>();
  ending->end = std::move(end);
  const Event marker = mark(queue);  // held until the calls that name it have returned
  ending->marker = marker;
  const auto on_end = [](cl_event, cl_int status, void* self) {
    const std::unique_ptr<std::shared_ptr<Ending>> held(static_cast<std::shared_ptr<Ending>*>(self));
    Ending& ending = **held;
    if (ending.settled.exchange(true)) return;
    ending.marker = {};  // before anybody learns that all is over
    ending.end(status);
  };
  auto held = std::make_unique<std::shared_ptr<Ending>>(ending);
  check(clSetEventCallback(marker.get(), CL_COMPLETE, on_end, held.get()), "callback of an event");
  static_cast<void>(held.release());
  // Only now: Oclgrind does the work in this call, and makes no callback for an event that has already ended.
  const cl_int status = clFlush(queue);
  if (status != CL_SUCCESS && !ending->settled.exchange(true)) check(status, "flush");
}

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
  cl_int status = CL_QUEUED;
  if (!last_ ||
      clGetEventInfo(last_.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) != CL_SUCCESS)
    return false;
  return status == CL_COMPLETE && !outcome();
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

// What the first of them failed with, by the id of its run.
std::optional<sdk::Error> first_failure(const std::vector<std::shared_ptr<Flight>>& flights) {
  std::optional<sdk::Error> first;
  for (const auto& flight : flights) {
    std::optional<sdk::Error> failure = flight->outcome();  // of each: that is how it ends
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
    cl_int status = CL_QUEUED;  // while it has not ended
  };
  const auto end = std::make_shared<End>();  // the driver may call when nobody waits any more
  std::vector<std::shared_ptr<Flight>> flights;
  {
    const std::lock_guard lock(mutex_);
    flights = unreported_;
  }
  when_done(queue_.get(), [end](cl_int status) {
    const std::lock_guard lock(end->mutex);
    end->status = status;
    end->changed.notify_all();
  });
  std::unique_lock lock(end->mutex);
  if (!sdk::wait_until(end->changed, lock, deadline, [&] { return end->status <= CL_COMPLETE; }))
    throw sdk::Error(BP_TIMED_OUT, "the deadline passed before the work of the stream ended");
  {
    const std::lock_guard unreported(mutex_);
    std::erase_if(unreported_, [&](const auto& flight) {
      return std::find(flights.begin(), flights.end(), flight) != flights.end();
    });
  }
  if (const auto failure = first_failure(flights)) throw sdk::Error(*failure);
  check(end->status, "work of a stream");
}

std::shared_ptr<Flight> Stream::wait_for(const std::shared_ptr<const sdk::Order>& order) {
  {
    const std::lock_guard lock(mutex_);
    // A framework may wait by means of its own and never ask here.
    constexpr size_t kKept = 64;
    if (unreported_.size() >= kKept)
      std::erase_if(unreported_, [](const auto& flight) { return flight->ended_well(); });
    unreported_.reserve(unreported_.size() + 2);  // for `follow`, which must not fail
  }
  if (order->waits().empty()) return nullptr;
  std::vector<Event> events;
  bool on_host = false;
  for (const bp_point_t& point : order->waits()) {
    Timeline* const timeline = timeline_of(point);
    if (timeline != nullptr && timeline->value() >= point.value) continue;
    Event event = timeline != nullptr ? timeline->coming(point.value) : Event();
    if (event)
      events.push_back(std::move(event));
    else
      on_host = true;
  }
  const auto failure = std::make_shared<std::optional<sdk::Error>>();  // of the wait
  if (on_host && order->must_wait()) {
    events.assign(1, open_gate(queue_.get()));
    enter();
    try {
      // The work follows even where this fails: it makes garbage, and the end says so.
      std::thread([gate = events[0], reports = reports_, order, failure] {
        *failure = sdk::caught([&] { order->wait(); });
        clSetUserEventStatus(gate.get(), CL_COMPLETE);
        leave(*reports);
      }).detach();
    } catch (...) {
      leave(*reports_);
      throw;
    }
  } else if (on_host) {
    order->wait();  // throws where a point has failed
  }
  std::vector<cl_event> raw;
  for (const Event& event : events) raw.push_back(event.get());
  if (!raw.empty()) {
    check(clEnqueueBarrierWithWaitList(queue_.get(), static_cast<cl_uint>(raw.size()), raw.data(), nullptr),
          "wait in a stream");
  }
  return std::make_shared<Flight>([order, failure] { return *failure ? *failure : order->dependency(); },
                                  order->run().id);
}

void Stream::follow(const std::shared_ptr<const sdk::Order>& order, std::shared_ptr<Flight> wait,
                    std::shared_ptr<Flight> flight) noexcept {
  bool reports = order->run().done != nullptr;
  for (const bp_point_t& point : order->signals()) {
    Timeline* const timeline = timeline_of(point);
    reports = reports || timeline == nullptr;
    if (timeline == nullptr || !sdk::caught([&] { timeline->signal_after(mark(queue_.get()), point.value, flight); }))
      continue;
    clFinish(queue_.get());
    const std::optional<sdk::Error> failure = flight->outcome();
    static_cast<void>(sdk::caught([&] { timeline->signal(point.value, failure ? &*failure : nullptr); }));
  }
  {
    const std::lock_guard lock(mutex_);
    if (wait) unreported_.push_back(std::move(wait));
    unreported_.push_back(std::move(flight));
  }
  if (!reports) return;
  enter();
  const auto report = [order, flights = take_unreported(), reports = reports_](cl_int status) {
    std::optional<sdk::Error> failure = first_failure(flights);
    if (!failure && status != CL_COMPLETE) failure = sdk::caught([&] { check(status, "work of a stream"); });
    if (failure && failure->run == order->run().id) failure->run = 0;
    order->end(failure ? &*failure : nullptr);
    leave(*reports);
  };
  if (sdk::caught([&] { when_done(queue_.get(), report); })) {
    clFinish(queue_.get());
    report(CL_COMPLETE);
  }
}

void Stream::enter() {
  const std::lock_guard lock(reports_->mutex);
  ++reports_->count;
}

void Stream::leave(Reports& reports) {
  const std::lock_guard lock(reports.mutex);
  --reports.count;
  reports.changed.notify_all();  // under the lock: the stream is destroyed afterwards
}

bp_native_t Stream::native() {
  return {sizeof(bp_native_t), BP_NATIVE_CL_QUEUE, reinterpret_cast<uint64_t>(queue_.get())};
}

std::unique_ptr<sdk::Stream> Device::stream(const bp_stream_create_t& how) {
  if (how.native == nullptr) return std::make_unique<Stream>(queue());
  const bp_native_t given = sdk::read(how.native, "native");
  if (given.kind != BP_NATIVE_CL_QUEUE || given.handle == 0)
    throw sdk::Error(BP_UNSUPPORTED, "a stream cannot be made of a native of kind " + std::to_string(given.kind) +
                                         "; a cl_command_queue can");
  const auto raw = reinterpret_cast<cl_command_queue>(given.handle);
  check(clRetainCommandQueue(raw), "import of a command queue");
  Queue queue(raw);
  if (queried<cl_context>(clGetCommandQueueInfo, raw, CL_QUEUE_CONTEXT, "context of a command queue") != context())
    throw sdk::Error(BP_UNSUPPORTED,
                     "the command queue is of another context; that of an exported cl_mem is the device's own");
  const auto properties = queried<cl_command_queue_properties>(clGetCommandQueueInfo, raw, CL_QUEUE_PROPERTIES,
                                                               "properties of a command queue");
  if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0)
    throw sdk::Error(BP_UNSUPPORTED, "the command queue is out of order; a stream works in order");
  return std::make_unique<Stream>(std::move(queue));
}

// ---- semaphores -----------------------------------------------------------------------------------------------------

Timeline::Timeline(const Event& event) {
  reach(state_, event, 1);
}

void Timeline::reach(const std::shared_ptr<State>& state, const Event& event, uint64_t value) {
  struct Reached {
    std::shared_ptr<State> state;  // the driver may call when the semaphore is gone
    uint64_t value;
  };
  auto reached = std::make_unique<Reached>(Reached{state, value});
  const auto on_end = [](cl_event, cl_int status, void* self) {
    const std::unique_ptr<Reached> reached(static_cast<Reached*>(self));
    const sdk::Error failure(BP_DEPENDENCY_FAILED, "the event of a semaphore ended with a failure", BP_NO_NODE, status);
    reached->state->numbers.signal(reached->value, status == CL_COMPLETE ? nullptr : &failure);
  };
  check(clSetEventCallback(event.get(), CL_COMPLETE, on_end, reached.get()), "callback of an event");
  static_cast<void>(reached.release());
}

void Timeline::signal_after(const Event& event, uint64_t value, std::shared_ptr<Flight> flight) {
  {
    const std::lock_guard lock(state_->mutex);
    std::deque<Coming>& coming = state_->coming;
    while (coming.size() >= kKept && coming.front().last <= state_->numbers.value()) coming.pop_front();
    const uint64_t before = coming.empty() ? state_->numbers.value() : coming.back().last;
    coming.push_back({before + 1, value, event, std::move(flight)});
  }
  reach(state_, event, value);
}

Event Timeline::coming(uint64_t value) const {
  const std::lock_guard lock(state_->mutex);
  for (const Coming& coming : state_->coming)
    if (coming.first <= value && value <= coming.last) return coming.event;
  return {};
}

std::optional<sdk::Error> Timeline::failure(uint64_t value) {
  std::shared_ptr<Flight> flight;
  {
    const std::lock_guard lock(state_->mutex);
    for (const Coming& coming : state_->coming) {
      if (value < coming.first || value > coming.last) continue;
      flight = coming.flight;
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
  const bp_native_t given = sdk::read(how.native, "native");
  if (given.kind != BP_NATIVE_CL_EVENT || given.handle == 0)
    throw sdk::Error(BP_UNSUPPORTED, "a semaphore cannot be made of a native of kind " + std::to_string(given.kind) +
                                         "; a cl_event can");
  const auto raw = reinterpret_cast<cl_event>(given.handle);
  check(clRetainEvent(raw), "import of an event");
  return std::make_unique<Timeline>(Event(raw));
}

}  // namespace backplane::opencl

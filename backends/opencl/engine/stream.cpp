// SPDX-License-Identifier: Apache-2.0
#include "engine/stream.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "engine/device.h"
#include "engine/order.h"

namespace backplane::opencl {
namespace {

// False at the deadline (ns on the monotonic clock); BP_FOREVER has none.
template <class Predicate>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, uint64_t deadline,
                const Predicate& is_true) {
  if (deadline <= static_cast<uint64_t>(INT64_MAX)) {
    const std::chrono::steady_clock::time_point end{std::chrono::nanoseconds(deadline)};
    return changed.wait_until(lock, end, is_true);
  }
  changed.wait(lock, is_true);
  return true;
}

template <class T, class Object>
T told(cl_int (*ask)(Object, cl_uint, size_t, void*, size_t*), Object object, cl_uint what, std::string_view name) {
  T value{};
  check(ask(object, what, sizeof value, &value, nullptr), name);
  return value;
}

}  // namespace

// ---- streams --------------------------------------------------------------------------------------------------------

void Stream::wait(uint64_t deadline) {
  struct End {
    std::mutex mutex;
    std::condition_variable changed;
    cl_int status = CL_QUEUED;  // while it has not ended
  };
  const auto end = std::make_shared<End>();  // the driver may call when nobody waits any more
  when_done(queue_.get(), [end](cl_int status) {
    const std::lock_guard lock(end->mutex);
    end->status = status;
    end->changed.notify_all();
  });
  std::unique_lock lock(end->mutex);
  if (!wait_until(end->changed, lock, deadline, [&] { return end->status <= CL_COMPLETE; }))
    throw sdk::Error(BP_TIMED_OUT, "the deadline passed before the work of the stream ended");
  check(end->status, "work of a stream");
}

bp_native_t Stream::native() {
  return {sizeof(bp_native_t), BP_NATIVE_CL_QUEUE, reinterpret_cast<uint64_t>(queue_.get())};
}

std::unique_ptr<sdk::Stream> Device::stream(const bp_native_t* native, int32_t) {
  if (native == nullptr) return std::make_unique<Stream>(queue());
  const bp_native_t given = sdk::read(native, "native");
  if (given.kind != BP_NATIVE_CL_QUEUE || given.handle == 0)
    throw sdk::Error(BP_UNSUPPORTED, "a stream cannot be made of a native of kind " + std::to_string(given.kind) +
                                         "; a cl_command_queue can");
  const auto raw = reinterpret_cast<cl_command_queue>(given.handle);
  check(clRetainCommandQueue(raw), "import of a command queue");
  Queue queue(raw);
  if (told<cl_context>(clGetCommandQueueInfo, raw, CL_QUEUE_CONTEXT, "context of a command queue") != context())
    throw sdk::Error(BP_UNSUPPORTED,
                     "the command queue is of another context; that of an exported cl_mem is the device's own");
  const auto properties = told<cl_command_queue_properties>(clGetCommandQueueInfo, raw, CL_QUEUE_PROPERTIES,
                                                            "properties of a command queue");
  if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0)
    throw sdk::Error(BP_UNSUPPORTED, "the command queue is out of order; a stream works in order");
  return std::make_unique<Stream>(std::move(queue));
}

// ---- semaphores -----------------------------------------------------------------------------------------------------

Timeline::Timeline(const Event& event) {
  // The driver may call when the semaphore is gone.
  auto state = std::make_unique<std::shared_ptr<State>>(state_);
  const auto on_end = [](cl_event, cl_int status, void* self) {
    const std::unique_ptr<std::shared_ptr<State>> state(static_cast<std::shared_ptr<State>*>(self));
    (*state)->signal(1, status == CL_COMPLETE ? BP_OK : BP_DEPENDENCY_FAILED);
  };
  check(clSetEventCallback(event.get(), CL_COMPLETE, on_end, state.get()), "import of an event");
  static_cast<void>(state.release());
}

void Timeline::State::signal(uint64_t to, bp_status_t status) {
  const std::lock_guard lock(mutex);
  if (status != BP_OK && failure == BP_OK) {
    failure = status;
    good = value;
  }
  value = std::max(value, to);
  changed.notify_all();
}

bool Timeline::reached_by(uint64_t value, uint64_t deadline) const {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto settled = [&] { return state.failure != BP_OK || state.value >= value; };
  if (!wait_until(state.changed, lock, deadline, settled)) return false;
  if (state.failure != BP_OK && state.good < value)
    throw sdk::Error(BP_DEPENDENCY_FAILED, "what was to bring a semaphore to " + std::to_string(value) + " failed");
  return true;
}

void Timeline::wait(uint64_t value, uint64_t deadline) {
  if (!reached_by(value, deadline))
    throw sdk::Error(BP_TIMED_OUT, "the deadline passed before the semaphore reached " + std::to_string(value));
}

void Timeline::signal(uint64_t value, bp_status_t status) {
  state_->signal(value, status);
}

uint64_t Timeline::value() {
  const std::lock_guard lock(state_->mutex);
  return state_->value;
}

std::unique_ptr<sdk::NativeSemaphore> Device::semaphore(const bp_native_t* native) {
  if (native == nullptr) return std::make_unique<Timeline>();
  const bp_native_t given = sdk::read(native, "native");
  if (given.kind != BP_NATIVE_CL_EVENT || given.handle == 0)
    throw sdk::Error(BP_UNSUPPORTED, "a semaphore cannot be made of a native of kind " + std::to_string(given.kind) +
                                         "; a cl_event can");
  const auto raw = reinterpret_cast<cl_event>(given.handle);
  check(clRetainEvent(raw), "import of an event");
  return std::make_unique<Timeline>(Event(raw));
}

}  // namespace backplane::opencl

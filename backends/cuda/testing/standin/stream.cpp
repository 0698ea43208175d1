// SPDX-License-Identifier: Apache-2.0
#include "testing/standin/stream.h"

#include <map>

#include "testing/standin/devices.h"
#include "testing/standin/hooks.h"

#define EXPORT extern "C" STANDIN_EXPORT

std::mutex& standin::order_mutex = *new std::mutex;
std::condition_variable& standin::order_changed = *new std::condition_variable;
bool standin::fails_in_capture = false;
std::set<CUstream>& standin::streams = *new std::set<CUstream>;

using namespace standin;

// ---- order ----------------------------------------------------------------------------------------------------------

void CUstream_st::run() {
  std::unique_lock lock(order_mutex);
  for (;;) {
    order_changed.wait(lock, [this] { return stopping || !work.empty(); });
    if (work.empty()) return;
    const std::function<void()> next = std::move(work.front());
    work.pop_front();
    busy = true;
    lock.unlock();
    next();
    lock.lock();
    busy = false;
    order_changed.notify_all();
  }
}

CUstream standin::stream_of(CUstream stream) {
  if (stream != nullptr) return stream;
  static std::mutex& defaults_mutex = *new std::mutex;
  static std::map<CUcontext, CUstream>& defaults = *new std::map<CUcontext, CUstream>;
  const std::lock_guard lock(defaults_mutex);
  CUstream& own = defaults[current_context()];
  if (own == nullptr) {
    own = new CUstream_st(current_context(), false);
    own->thread.detach();
    const std::lock_guard order(order_mutex);
    streams.insert(own);
  }
  return own;
}

bool standin::is_of_current(CUstream stream) {
  return stream == nullptr || stream->context == current_context();
}

void standin::wait_for_all() {
  std::unique_lock lock(order_mutex);
  order_changed.wait(lock, [] {
    for (const CUstream each : streams)
      if (!each->idle()) return false;
    return true;
  });
}

namespace {

// CUDA's default stream waits for all blocking streams, so it cannot be used while one of them is being captured.
bool is_default_unusable() {
  for (const CUstream each : streams)
    if (each->blocks_default && each->recording != nullptr) return true;
  return false;
}

CUresult add_locked(CUstream stream, std::function<void()> next) {
  if (stream == nullptr && is_default_unusable()) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  CUstream_st& own = *stream_of(stream);
  if (own.recording == nullptr) {
    own.work.push_back(std::move(next));
    order_changed.notify_all();
    return CUDA_SUCCESS;
  }
  own.recording->is_valid = own.recording->is_valid && !fails_in_capture;
  if (!own.recording->is_valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  own.recording->commands.push_back(std::move(next));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult standin::add(CUstream stream, std::function<void()> next) {
  stream_of(stream);  // may create the default stream, which takes the lock
  const std::lock_guard lock(order_mutex);
  return add_locked(stream, std::move(next));
}

// All threads have the capture mode "global", which is CUDA's default: a call that could disturb a capture is refused
// on all threads while a capture in global mode is in progress, and, during a capture in thread-local mode, on the
// thread that began it. Captures in relaxed mode refuse nothing.
CUresult standin::unsafe_call() {
  const std::lock_guard lock(order_mutex);
  CUresult result = CUDA_SUCCESS;
  for (const CUstream each : streams) {
    if (each->recording == nullptr || each->recording->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    if (each->recording->mode != CU_STREAM_CAPTURE_MODE_GLOBAL && each->recording->thread != std::this_thread::get_id())
      continue;
    each->recording->is_valid = false;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult standin::refuse_in_capture(CUstream stream) {
  const std::lock_guard lock(order_mutex);
  if (stream == nullptr) return is_default_unusable() ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
  if (stream->recording == nullptr) return CUDA_SUCCESS;
  stream->recording->is_valid = false;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

// ---- streams --------------------------------------------------------------------------------------------------------

EXPORT CUresult cuStreamCreate(CUstream* out, unsigned flags) {
  IN_CONTEXT();
  *out = new CUstream_st(current_context(), (flags & CU_STREAM_NON_BLOCKING) == 0);
  const std::lock_guard lock(order_mutex);
  streams.insert(*out);
  count("streams", 1);
  return CUDA_SUCCESS;
}

// Unlike CUDA's function, waits for the stream's work, so that no work outlives the test that started it.
EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  if (!has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  {
    const std::lock_guard lock(order_mutex);
    stream->stopping = true;
    order_changed.notify_all();
  }
  stream->thread.join();
  {
    const std::lock_guard lock(order_mutex);
    streams.erase(stream);
  }
  delete stream;
  count("streams", -1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  IN_CONTEXT();
  REFUSE_IF_UNSAFE();
  if (const CUresult refused = refuse_in_capture(stream); refused != CUDA_SUCCESS) return refused;
  const CUstream own = stream_of(stream);
  std::unique_lock lock(order_mutex);
  order_changed.wait(lock, [&] { return own->idle(); });
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamQuery(CUstream stream) {
  IN_CONTEXT();
  REFUSE_IF_UNSAFE();
  if (const CUresult refused = refuse_in_capture(stream); refused != CUDA_SUCCESS) return refused;
  const std::lock_guard lock(order_mutex);
  return stream_of(stream)->idle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  IN_CONTEXT();
  const std::shared_ptr<EventState> state = event->state;
  uint64_t recorded = 0;
  {
    const std::lock_guard lock(order_mutex);
    recorded = state->recorded;
    Recording* const recording = stream == nullptr ? nullptr : stream->recording.get();
    if (state->captured_in != nullptr) {
      if (state->captured_in == stream && recording != nullptr) return CUDA_SUCCESS;  // the stream's order suffices
      return CUDA_ERROR_NOT_SUPPORTED;  // with CUDA the capture would continue in a second stream
    }
    if (recording != nullptr) {  // the event is of work outside of the capture
      recording->is_valid = false;
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
  }
  return add(stream, [=] {
    std::unique_lock lock(order_mutex);
    order_changed.wait(lock, [&] { return state->reached >= recorded; });
  });
}

EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr word, cuuint32_t value, unsigned) {
  IN_CONTEXT();
  if (const CUresult refused = refuse_in_capture(stream); refused != CUDA_SUCCESS) return refused;
  return add(stream, [=] {
    while (*reinterpret_cast<volatile uint32_t*>(word) < value)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  });
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext* out) {
  IN_CONTEXT();
  *out = stream_of(stream)->context;
  return CUDA_SUCCESS;
}

// ---- events ---------------------------------------------------------------------------------------------------------

EXPORT CUresult cuEventCreate(CUevent* out, unsigned) {
  IN_CONTEXT();
  *out = new CUevent_st{std::make_shared<EventState>(EventState{.context = current_context()})};
  count("events", 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  if (!has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  count("events", -1);
  {
    const std::lock_guard lock(order_mutex);
    if (event->state->waiting != 0) static_cast<void>(called("destruction of an event that is waited for"));
  }
  delete event;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  IN_CONTEXT();
  const std::shared_ptr<EventState> state = event->state;
  if (stream_of(stream)->context != state->context) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(order_mutex);
  if (stream != nullptr && stream->recording != nullptr) {
    if (!stream->recording->is_valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    state->captured_in = stream;
    return CUDA_SUCCESS;
  }
  state->captured_in = nullptr;
  const uint64_t turn = ++state->recorded;
  return add_locked(stream, [=] {
    const std::lock_guard lock(order_mutex);
    state->reached = turn;
    state->time = std::chrono::steady_clock::now();
    order_changed.notify_all();
  });
}

namespace {

// Refuses the use of an event that a capture recorded, as it has no state to wait for, and invalidates that capture.
CUresult refuse_captured(const EventState& state) {
  const std::lock_guard lock(order_mutex);
  if (state.captured_in == nullptr) return CUDA_SUCCESS;
  if (streams.count(state.captured_in) != 0 && state.captured_in->recording != nullptr)
    state.captured_in->recording->is_valid = false;
  return CUDA_ERROR_CAPTURED_EVENT;
}

}  // namespace

EXPORT CUresult cuEventQuery(CUevent event) {
  IN_CONTEXT();
  REFUSE_IF_UNSAFE();
  if (const CUresult refused = refuse_captured(*event->state); refused != CUDA_SUCCESS) return refused;
  const std::lock_guard lock(order_mutex);
  return event->state->reached >= event->state->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
  IN_CONTEXT();
  REFUSE_IF_UNSAFE();
  if (const CUresult refused = refuse_captured(*event->state); refused != CUDA_SUCCESS) return refused;
  const std::shared_ptr<EventState> state = event->state;
  std::unique_lock lock(order_mutex);
  ++state->waiting;
  order_changed.wait(lock, [&] { return state->reached >= state->recorded; });
  --state->waiting;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  IN_CONTEXT();
  if (from->state->context != to->state->context) return CUDA_ERROR_INVALID_HANDLE;
  for (const CUevent each : {from, to})
    if (const CUresult refused = refuse_captured(*each->state); refused != CUDA_SUCCESS) return refused;
  const std::lock_guard lock(order_mutex);
  *milliseconds = std::chrono::duration<float, std::milli>(to->state->time - from->state->time).count();
  return CUDA_SUCCESS;
}

// SPDX-License-Identifier: Apache-2.0
#include "driver/queue.h"

#include <algorithm>
#include <atomic>

namespace backplane::opencl {
namespace {

class WaitList {
 public:
  explicit WaitList(std::span<const gpu::Event> events) {
    for (const gpu::Event& event : events) raw_.push_back(static_cast<const Event&>(*event).get());
  }
  cl_uint count() const { return static_cast<cl_uint>(raw_.size()); }
  const cl_event* data() const { return raw_.empty() ? nullptr : raw_.data(); }

 private:
  std::vector<cl_event> raw_;
};

gpu::Event held(cl_event event) {
  return std::make_shared<const Event>(ClEvent(event));
}

class OpenGate final : public gpu::Gate {
 public:
  explicit OpenGate(ClEvent event) : event_(std::move(event)) {}
  void open() noexcept override { clSetUserEventStatus(event_.get(), CL_COMPLETE); }

 private:
  ClEvent event_;
};

}  // namespace

// ---- events --------------------------------------------------------------------------------------------------------

bool Event::ended_well() const {
  cl_int status = CL_QUEUED;
  return clGetEventInfo(get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) == CL_SUCCESS &&
         status == CL_COMPLETE;
}

void Event::check(std::string_view what) const {
  cl_int status = CL_COMPLETE;
  const cl_int asked = clGetEventInfo(get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  if (asked != CL_SUCCESS) status = asked;
  if (status < CL_COMPLETE) opencl::check(status, what);
}

void Event::when_ended(std::function<void(const sdk::Error*)> end) const {
  using End = std::function<void(const sdk::Error*)>;
  const auto on_end = [](cl_event event, cl_int status, void* self) {
    const std::unique_ptr<End> end(static_cast<End*>(self));
    // For an event that failed before the callback was set, PoCL 3.1 passes CL_COMPLETE.
    cl_int own = CL_COMPLETE;
    if (status == CL_COMPLETE &&
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof own, &own, nullptr) == CL_SUCCESS)
      status = std::min(own, CL_COMPLETE);
    if (status == CL_COMPLETE) return (*end)(nullptr);
    const sdk::Error failure = error_of(status, "a command");
    (*end)(&failure);
  };
  auto held = std::make_unique<End>(std::move(end));
  opencl::check(clSetEventCallback(get(), CL_COMPLETE, on_end, held.get()), "callback of an event");
  static_cast<void>(held.release());
}

Event::Times Event::times() const {
  const auto time = [this](cl_profiling_info what) {
    cl_ulong t = 0;  // stays 0 if profiling is disabled in the framework's queue
    clGetEventProfilingInfo(get(), what, sizeof t, &t, nullptr);
    return t;
  };
  return {time(CL_PROFILING_COMMAND_START), time(CL_PROFILING_COMMAND_END)};
}

// ---- kernels -------------------------------------------------------------------------------------------------------

void Kernel::set(uint32_t index, const void* value, uint32_t bytes) {
  check(clSetKernelArg(get(), index, bytes, value), "argument " + std::to_string(index) + " of a kernel");
}

void Kernel::set(uint32_t index, const gpu::DeviceMemory& memory) {
  const cl_mem buffer = raw(memory);
  set(index, &buffer, sizeof buffer);
}

// ---- commands ------------------------------------------------------------------------------------------------------

bp_native_t CommandQueue::native() const {
  return {sizeof(bp_native_t), BP_NATIVE_CL_QUEUE, reinterpret_cast<uint64_t>(queue_.get())};
}

gpu::Event CommandQueue::launch(gpu::DeviceKernel& kernel, const gpu::Ranges& ranges, bool) {
  const auto& own = static_cast<const Kernel&>(kernel);
  cl_event event = nullptr;
  const cl_int status = clEnqueueNDRangeKernel(queue_.get(), own.get(), 3, nullptr, ranges.global.data(),
                                               ranges.local.data(), 0, nullptr, &event);
  if (status != CL_SUCCESS) check(status, "kernel '" + own.entry() + "'");
  return held(event);
}

gpu::Event CommandQueue::write(const gpu::Span& to, const void* from, uint64_t bytes, bool blocking,
                               std::string_view what) {
  cl_event event = nullptr;
  check(clEnqueueWriteBuffer(queue_.get(), raw(*to.memory), blocking ? CL_TRUE : CL_FALSE, to.offset, bytes, from, 0,
                             nullptr, &event),
        what);
  return held(event);
}

gpu::Event CommandQueue::read(void* to, const gpu::Span& from, uint64_t bytes, bool blocking, std::string_view what) {
  cl_event event = nullptr;
  check(clEnqueueReadBuffer(queue_.get(), raw(*from.memory), blocking ? CL_TRUE : CL_FALSE, from.offset, bytes, to, 0,
                            nullptr, &event),
        what);
  return held(event);
}

gpu::Event CommandQueue::copy(const gpu::Span& to, const gpu::Span& from, uint64_t bytes, std::string_view what) {
  cl_event event = nullptr;
  check(clEnqueueCopyBuffer(queue_.get(), raw(*from.memory), raw(*to.memory), from.offset, to.offset, bytes, 0, nullptr,
                            &event),
        what);
  return held(event);
}

void CommandQueue::fill(const gpu::Span& to, uint32_t word, uint64_t bytes, std::string_view what) {
  check(clEnqueueFillBuffer(queue_.get(), raw(*to.memory), &word, sizeof word, to.offset, bytes, 0, nullptr, nullptr),
        what);
}

CommandQueue::Mapped CommandQueue::map(const gpu::Span& range, uint64_t bytes, uint32_t access, bool blocking,
                                       std::string_view what) {
  const cl_map_flags flags =
      ((access & BP_MAP_READ) != 0 ? CL_MAP_READ : 0) | ((access & BP_MAP_WRITE) != 0 ? CL_MAP_WRITE : 0);
  cl_int status = CL_SUCCESS;
  cl_event event = nullptr;
  void* const pointer = clEnqueueMapBuffer(queue_.get(), raw(*range.memory), blocking ? CL_TRUE : CL_FALSE, flags,
                                           range.offset, bytes, 0, nullptr, &event, &status);
  check(status, what);
  return {pointer, held(event)};
}

gpu::Event CommandQueue::unmap(const gpu::DeviceMemory& memory, void* pointer, std::string_view what) {
  cl_event event = nullptr;
  check(clEnqueueUnmapMemObject(queue_.get(), raw(memory), pointer, 0, nullptr, &event), what);
  return held(event);
}

// ---- order ---------------------------------------------------------------------------------------------------------

ClEvent CommandQueue::marker() const {
  cl_event event = nullptr;
  check(clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &event), "marker in a command queue");
  return ClEvent(event);
}

gpu::Event CommandQueue::mark() {
  return std::make_shared<const Event>(marker());
}

void CommandQueue::wait(std::span<const gpu::Event> events) {
  const WaitList list(events);
  check(clEnqueueBarrierWithWaitList(queue_.get(), list.count(), list.data(), nullptr), "wait in a stream");
}

std::unique_ptr<gpu::Gate> CommandQueue::hold() {
  cl_context context = nullptr;
  check(clGetCommandQueueInfo(queue_.get(), CL_QUEUE_CONTEXT, sizeof context, &context, nullptr), "context of a queue");
  cl_int status = CL_SUCCESS;
  ClEvent event(clCreateUserEvent(context, &status));
  check(status, "creating a user event");
  const cl_event gate = event.get();
  auto held = std::make_unique<OpenGate>(std::move(event));
  check(clEnqueueBarrierWithWaitList(queue_.get(), 1, &gate, nullptr), "wait in a stream");
  return held;
}

void CommandQueue::when_done(std::function<void(const sdk::Error*)> end) {
  struct Ending {
    std::function<void(const sdk::Error*)> end;
    ClEvent marker;
    std::atomic<bool> ended{false};  // `end` was called, or will never be called
  };
  const auto ending = std::make_shared<Ending>();
  ending->end = std::move(end);
  const ClEvent last = marker();  // keeps the event alive until the calls below have returned
  ending->marker = last;
  const auto on_end = [](cl_event, cl_int status, void* self) {
    const std::unique_ptr<std::shared_ptr<Ending>> held(static_cast<std::shared_ptr<Ending>*>(self));
    Ending& ending = **held;
    if (ending.ended.exchange(true)) return;
    ending.marker = {};  // releases the event before the end is reported
    if (status == CL_COMPLETE) return ending.end(nullptr);
    const sdk::Error failure = error_of(status, "run");
    ending.end(&failure);
  };
  auto held = std::make_unique<std::shared_ptr<Ending>>(ending);
  check(clSetEventCallback(last.get(), CL_COMPLETE, on_end, held.get()), "callback of an event");
  static_cast<void>(held.release());
  // Flushes only after the callback is set: Oclgrind executes the work in clFlush, and never calls a callback that is
  // set on a completed event.
  const cl_int status = clFlush(queue_.get());
  if (status != CL_SUCCESS && !ending->ended.exchange(true)) check(status, "flushing a command queue");
}

void CommandQueue::flush() {
  check(clFlush(queue_.get()), "flushing a command queue");
}

void CommandQueue::finish(std::string_view what) {
  check(clFinish(queue_.get()), what);
}

}  // namespace backplane::opencl

// SPDX-License-Identifier: Apache-2.0
#include "engine/order.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>

#include "engine/stream.h"

namespace backplane::opencl {
namespace {

// How often a cancel token is looked at: whoever sets it cannot wake us.
constexpr uint64_t kCancelSliceNs = 2'000'000;

uint64_t now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

void wait_native(const sdk::Host& host, const bp_point_t& point, const bp_run_t& run) {
  const uint64_t deadline = run.deadline != 0 ? run.deadline : BP_FOREVER;
  for (;;) {
    host.check(run.cancel, run.deadline);
    const uint64_t until = run.cancel != nullptr ? std::min(deadline, now() + kCancelSliceNs) : deadline;
    if (timeline_of(point).reached_by(point.value, until)) return;
  }
}

}  // namespace

Order::Order(const sdk::Host& host, const bp_run_t& run)
    : host_(&host),
      run_(run),
      waits_(run.waits, run.waits + run.wait_count),
      signals_(run.signals, run.signals + run.signal_count) {
  run_.waits = waits_.data();
  run_.signals = signals_.data();
}

bool Order::must_wait() const {
  const bp_host_t* host = host_->raw();
  return std::ranges::any_of(waits_, [&](const bp_point_t& point) {
    uint64_t value = 0;
    if (point.native != nullptr) return !timeline_of(point).reached_by(point.value, 0);
    const bool told = host->semaphore_query != nullptr && point.semaphore != nullptr;
    return told && host->semaphore_query(host, point.semaphore, &value) == BP_OK && value < point.value;
  });
}

void Order::wait() const {
  for (const bp_point_t& point : waits_) {
    if (point.native != nullptr)
      wait_native(*host_, point, run_);
    else
      host_->wait(point, run_.deadline, run_.cancel);
  }
}

void Order::end(const sdk::Error* failure) const {
  const bp_status_t status = failure != nullptr ? failure->status : BP_OK;
  if (run_.done != nullptr) {
    std::string text(failure != nullptr ? failure->text : "");
    bp_error_t error{};
    error.size = sizeof error;
    error.text = text.data();
    error.text_capacity = text.size();
    if (failure != nullptr)
      sdk::report(&error, status, failure->text, failure->node, failure->vendor_code, failure->flags);
    run_.done(run_.self, status, failure != nullptr ? &error : nullptr);
  }
  for (const bp_point_t& point : signals_) {
    if (point.native != nullptr)
      timeline_of(point).signal(point.value, status);
    else
      host_->signal(point, status);
  }
}

cl_command_queue stream_queue(const bp_run_t& run) {
  return run.stream != nullptr ? static_cast<Stream*>(sdk::stream_of(run.stream))->queue() : nullptr;
}

void when_done(cl_command_queue queue, std::function<void(cl_int)> end) {
  struct Ending {
    std::function<void(cl_int)> end;
    Event marker;
    std::atomic<bool> settled{false};  // `end` was called, or never will be
  };
  const auto ending = std::make_shared<Ending>();
  ending->end = std::move(end);
  cl_event raw = nullptr;
  check(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &raw), "marker");
  const Event marker(raw);  // held until the calls that name it have returned
  ending->marker = marker;
  const auto on_end = [](cl_event, cl_int status, void* self) {
    const std::unique_ptr<std::shared_ptr<Ending>> held(static_cast<std::shared_ptr<Ending>*>(self));
    Ending& ending = **held;
    if (ending.settled.exchange(true)) return;
    ending.marker = {};  // before somebody is told that all is over
    ending.end(status);
  };
  auto held = std::make_unique<std::shared_ptr<Ending>>(ending);
  check(clSetEventCallback(raw, CL_COMPLETE, on_end, held.get()), "callback of an event");
  static_cast<void>(held.release());
  // Only now: Oclgrind does the work in this call, and calls nobody for an event that has already ended.
  const cl_int status = clFlush(queue);
  if (status != CL_SUCCESS && !ending->settled.exchange(true)) check(status, "flush");
}

}  // namespace backplane::opencl

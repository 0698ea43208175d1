// SPDX-License-Identifier: Apache-2.0
#include "host/stream.h"

#include <chrono>

namespace backplane::conform {
namespace {

constexpr std::chrono::seconds kPatience{10};  // the longest wait for work that normally takes milliseconds

}  // namespace

std::unique_ptr<Stream> Stream::create(const Device& device, Answer& out_answer, const bp_native_t* native) {
  const bp_stream_create_t how = {.size = sizeof how, .priority = BP_PRIORITY_NORMAL, .native = native};
  Detail detail;
  auto* raw = reinterpret_cast<bp_stream_t*>(1);
  const bp_status_t status = device.plugin().sync->stream_create(device.raw(), &how, &raw, detail.error());
  out_answer = {status, Stage::kStream, detail.text()};
  if (status != BP_OK) {
    if (raw != nullptr) throw Breach("stream_create fails but does not set its out-argument to NULL");
    return nullptr;
  }
  if (raw == nullptr) throw Breach("stream_create returns BP_OK but no stream");
  return std::unique_ptr<Stream>(new Stream(device, raw));
}

Stream::~Stream() {
  device_.plugin().sync->stream_destroy(raw_);
}

Answer Stream::wait(uint64_t deadline) const {
  Detail detail;
  const bp_status_t status = device_.plugin().sync->stream_wait(raw_, deadline, detail.error());
  return {status, Stage::kStream, detail.text(), detail.run()};
}

std::unique_ptr<NativeSemaphore> NativeSemaphore::create(const Device& device, uint64_t value,
                                                         const bp_native_t* native, Answer& out_answer) {
  const bp_semaphore_create_t how = {.size = sizeof how, .value = value, .native = native};
  Detail detail;
  auto* raw = reinterpret_cast<bp_native_semaphore_t*>(1);
  const bp_status_t status = device.plugin().sync->semaphore_create(device.raw(), &how, &raw, detail.error());
  out_answer = {status, Stage::kSemaphore, detail.text()};
  if (status != BP_OK) {
    if (raw != nullptr) throw Breach("semaphore_create fails but does not set its out-argument to NULL");
    return nullptr;
  }
  if (raw == nullptr) throw Breach("semaphore_create returns BP_OK but no semaphore");
  return std::unique_ptr<NativeSemaphore>(new NativeSemaphore(device, raw));
}

NativeSemaphore::~NativeSemaphore() {
  device_.plugin().sync->semaphore_destroy(raw_);
}

void End::expect(bp_run_t& run) {
  run.self = this;
  run.done = [](void* self, bp_status_t status, const bp_error_t*) {
    End& end = *static_cast<End*>(self);
    const std::lock_guard lock(end.mutex_);
    ++end.calls_;
    end.status_ = status;
    end.changed_.notify_all();
  };
}

bool End::wait() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [this] { return calls_ != 0; });
}

uint32_t End::calls() {
  const std::lock_guard lock(mutex_);
  return calls_;
}

bp_status_t End::status() {
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace backplane::conform

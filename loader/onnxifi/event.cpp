// SPDX-License-Identifier: Apache-2.0
#include "onnxifi/event.h"

namespace backplane::onnxifi {

uint64_t reached(const Semaphore& semaphore) {
  uint64_t value = 0;
  bp_error_t error{};
  error.size = sizeof error;
  // semaphore_query writes the value even if that value has failed.
  client::detail::try_call(error, api().semaphore_query, semaphore.get(), &value);
  return value;
}

void Event::signal() {
  const std::lock_guard lock(mutex_);
  if (is_signalled()) throw Failure{ONNXIFI_STATUS_INVALID_STATE};
  semaphore_.signal(1);
}

void Event::fail(onnxStatus status) {
  set_status(status);
  const std::lock_guard lock(mutex_);
  bp_error_t why{}, error{};
  why.size = error.size = sizeof error;
  why.status = BP_INTERNAL;  // a failure needs a status; `wait` returns status_ instead of it
  // Changes nothing if the program has signalled the event itself.
  client::detail::try_call(error, api().semaphore_signal, semaphore_.get(), uint64_t{1},
                           static_cast<const bp_error_t*>(&why));
}

bool Event::is_signalled() const {
  return reached(semaphore_) != 0;
}

onnxStatus Event::wait() const {
  try {
    semaphore_.wait(1);
  } catch (const Error& error) {
    if (error.status() != BP_DEPENDENCY_FAILED) throw;
    const onnxStatus status = status_.load(std::memory_order_acquire);
    return status == ONNXIFI_STATUS_SUCCESS ? ONNXIFI_STATUS_INTERNAL_ERROR : status;
  }
  return ONNXIFI_STATUS_SUCCESS;
}

}  // namespace backplane::onnxifi

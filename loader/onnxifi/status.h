// SPDX-License-Identifier: Apache-2.0
// Maps errors to ONNXIFI's statuses.
#pragma once

#include <pthread.h>

#include "backplane/client.hpp"
#include "onnxifi/onnxifi.h"

namespace backplane::onnxifi {

// An exception that ends the call with this status.
struct Failure {
  onnxStatus status;
};

// The general status for an error of the loader. Callers may know a more specific one.
onnxStatus status_of(bp_status_t status);
// The status for the reason why a device does not support a node.
onnxStatus status_of_reason(uint32_t reason);

// Defers pthread_cancel of this thread for the lifetime of the object, because a cancellation must not unwind this
// library or the loader.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = 0;
};

// Calls `body`, which returns a status or throws. Converts exceptions to a status.
template <class Body>
onnxStatus fenced(const Body& body) noexcept {
  const NoCancellation deferred;
  try {
    return body();
  } catch (const Failure& failure) {
    return failure.status;
  } catch (const Error& error) {
    return status_of(error.status());
  } catch (const std::bad_alloc&) {
    return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  } catch (...) {
    return ONNXIFI_STATUS_INTERNAL_ERROR;
  }
}

}  // namespace backplane::onnxifi

// SPDX-License-Identifier: Apache-2.0
// Maps failures to ONNXIFI's statuses.
#pragma once

#include "backplane/client.hpp"
#include "onnxifi/onnxifi.h"

namespace backplane::onnxifi {

// The exception that ends a call with a status.
struct Failure {
  onnxStatus status;
};

// The status for a failure of the loader, unless the caller has a more specific one.
onnxStatus status_of(bp_status_t status);
// The status for a device's reason not to support a node.
onnxStatus status_of_reason(uint32_t reason);

// Calls `body`, which returns a status or throws.
template <class Body>
onnxStatus fenced(const Body& body) noexcept {
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

// SPDX-License-Identifier: Apache-2.0
// Failures as ONNXIFI's statuses.
#pragma once

#include "backplane/client.hpp"
#include "onnxifi/onnxifi.h"

namespace backplane::onnxifi {

// What ends a call.
struct Failure {
  onnxStatus status;
};

// Of a failure of the loader that the caller has no better word for.
onnxStatus status_of(bp_status_t status);
// Of a device's reason for not taking a node.
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

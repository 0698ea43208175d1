// SPDX-License-Identifier: Apache-2.0
// Translates ONNXIFI's status codes to Backplane's reasons and errors.
#pragma once

#include <string>

#include "backplane/sdk.hpp"
#include "onnxifi/onnxifi.h"

namespace onnxifi_backend {

// Returns a name such as "UNSUPPORTED_OPERATOR", or "status 77" for a status that ONNXIFI does not define.
std::string status_name(onnxStatus status);

// Whether the library accepted a model or graph, natively or with emulation.
inline bool accepted(onnxStatus status) {
  return status == ONNXIFI_STATUS_SUCCESS || status == ONNXIFI_STATUS_FALLBACK;
}

// The BP_REASON_* for a status with which a library refused a model.
uint32_t reason_of(onnxStatus status);

// The error for a status that the function named `call` returned.
backplane::sdk::Error error_of(onnxStatus status, std::string_view call);

}  // namespace onnxifi_backend

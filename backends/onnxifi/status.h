// SPDX-License-Identifier: Apache-2.0
// Translates ONNXIFI's statuses to Backplane's reasons and errors.
#pragma once

#include <string>

#include "backplane/sdk.hpp"
#include "onnxifi/onnxifi.h"

namespace onnxifi_backend {

// "UNSUPPORTED_OPERATOR"; "status 77" for a status that ONNXIFI does not have.
std::string status_name(onnxStatus status);

// Whether a model or graph was accepted: natively, or by emulation.
inline bool accepted(onnxStatus status) {
  return status == ONNXIFI_STATUS_SUCCESS || status == ONNXIFI_STATUS_FALLBACK;
}

// The BP_REASON_* for a status that refuses a model.
uint32_t reason_of(onnxStatus status);

// The error for a status that the function named `call` returned.
backplane::sdk::Error error_of(onnxStatus status, std::string_view call);

}  // namespace onnxifi_backend

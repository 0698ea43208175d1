// SPDX-License-Identifier: Apache-2.0
// ONNXIFI's statuses in the terms of Backplane.
#pragma once

#include <string>

#include "backplane/sdk.hpp"
#include "onnxifi/onnxifi.h"

namespace onnxifi_backend {

// "UNSUPPORTED_OPERATOR", or the number of a status that ONNXIFI does not have.
std::string status_name(onnxStatus status);

// Whether a model or graph was accepted: natively, or by emulation.
inline bool accepted(onnxStatus status) {
  return status == ONNXIFI_STATUS_SUCCESS || status == ONNXIFI_STATUS_FALLBACK;
}

// BP_REASON_* for a model that was refused.
uint32_t reason_of(onnxStatus status);

// The failure of a call: `call` names the function.
backplane::sdk::Error error_of(onnxStatus status, std::string_view call);

}  // namespace onnxifi_backend

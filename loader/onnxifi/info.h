// SPDX-License-Identifier: Apache-2.0
// Implements onnxGetBackendInfo.
#pragma once

#include <string>

#include "onnxifi/backend.h"

namespace backplane::onnxifi {

// The value that onnxGetBackendInfo returns, as bytes. Throws UNSUPPORTED_ATTRIBUTE.
std::string info(const BackendId& id, onnxBackendInfo type);

}  // namespace backplane::onnxifi

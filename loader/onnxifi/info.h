// SPDX-License-Identifier: Apache-2.0
// onnxGetBackendInfo.
#pragma once

#include <string>

#include "onnxifi/backend.h"

namespace backplane::onnxifi {

// The bytes of the value that onnxGetBackendInfo returns. Throws UNSUPPORTED_ATTRIBUTE.
std::string info(const BackendId& id, onnxBackendInfo type);

}  // namespace backplane::onnxifi

// SPDX-License-Identifier: Apache-2.0
#include "onnxifi/status.h"

namespace backplane::onnxifi {

onnxStatus status_of(bp_status_t status) {
  switch (status) {
    case BP_OK:
      return ONNXIFI_STATUS_SUCCESS;
    case BP_INVALID_MODEL:
      return ONNXIFI_STATUS_INVALID_MODEL;
    case BP_UNSUPPORTED:
      return ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
    case BP_TYPE_MISMATCH:
      return ONNXIFI_STATUS_MISMATCHING_SHAPE;
    case BP_BUFFER_TOO_SMALL:
      return ONNXIFI_STATUS_MISMATCHING_SHAPE;
    case BP_RESOURCE_EXHAUSTED:
      return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
    case BP_DEVICE_LOST:
    case BP_FORKED:
      return ONNXIFI_STATUS_BACKEND_UNAVAILABLE;
    default:
      return ONNXIFI_STATUS_INTERNAL_ERROR;
  }
}

onnxStatus status_of_reason(uint32_t reason) {
  switch (reason) {
    case BP_REASON_OPSET:
      return ONNXIFI_STATUS_UNSUPPORTED_VERSION;
    case BP_REASON_DTYPE:
    case BP_REASON_PRECISION:
      return ONNXIFI_STATUS_UNSUPPORTED_DATATYPE;
    case BP_REASON_SHAPE:
      return ONNXIFI_STATUS_UNSUPPORTED_SHAPE;
    case BP_REASON_ATTRIBUTE:
    case BP_REASON_CONSTANT:
      return ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
    case BP_REASON_MEMORY:
      return ONNXIFI_STATUS_NO_DEVICE_MEMORY;
    default:
      return ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  }
}

}  // namespace backplane::onnxifi

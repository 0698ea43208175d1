// SPDX-License-Identifier: Apache-2.0
#include "host/status.h"

#include <fmt/format.h>

namespace backplane::conform {

std::string status_name(bp_status_t status) {
  switch (status) {
#define BACKPLANE_NAME(name) \
  case name:                 \
    return #name;
    BACKPLANE_NAME(BP_OK)
    BACKPLANE_NAME(BP_INVALID_ARGUMENT)
    BACKPLANE_NAME(BP_INVALID_MODEL)
    BACKPLANE_NAME(BP_UNSUPPORTED)
    BACKPLANE_NAME(BP_NOT_FOUND)
    BACKPLANE_NAME(BP_BUFFER_TOO_SMALL)
    BACKPLANE_NAME(BP_BAD_STATE)
    BACKPLANE_NAME(BP_TYPE_MISMATCH)
    BACKPLANE_NAME(BP_PERMISSION_DENIED)
    BACKPLANE_NAME(BP_RESOURCE_EXHAUSTED)
    BACKPLANE_NAME(BP_TIMED_OUT)
    BACKPLANE_NAME(BP_CANCELLED)
    BACKPLANE_NAME(BP_BUSY)
    BACKPLANE_NAME(BP_DEPENDENCY_FAILED)
    BACKPLANE_NAME(BP_DEVICE_LOST)
    BACKPLANE_NAME(BP_FORKED)
    BACKPLANE_NAME(BP_STALE)
    BACKPLANE_NAME(BP_INTERNAL)
    BACKPLANE_NAME(BP_INCOMPATIBLE)
    BACKPLANE_NAME(BP_CORRUPT)
    BACKPLANE_NAME(BP_IO_ERROR)
#undef BACKPLANE_NAME
    default:
      return fmt::format("the undefined status {:#x}", status);
  }
}

}  // namespace backplane::conform

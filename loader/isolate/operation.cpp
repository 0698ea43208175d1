// SPDX-License-Identifier: Apache-2.0
#include "isolate/operation.h"

namespace backplane::isolate {

const char* activity(Operation operation) {
  switch (operation) {
    case Operation::kLoad:
      return "was loaded and queried";
    case Operation::kCreate:
      return "was created";
    case Operation::kDestroy:
      return "was destroyed";
    case Operation::kCountDevices:
    case Operation::kDeviceInfo:
      return "described its devices";
    case Operation::kOpen:
      return "opened a device";
    case Operation::kClose:
      return "closed a device";
    case Operation::kHealth:
      return "checked whether a device works";
    case Operation::kOpsets:
      return "described a device's opsets";
    case Operation::kCoverage:
      return "was queried about operators";
    case Operation::kReview:
      return "reviewed an island";
    case Operation::kInfer:
      return "inferred the types of a node";
    case Operation::kCompile:
      return "compiled an island";
    case Operation::kValidate:
    case Operation::kDeserialize:
      return "read a stored program";
    case Operation::kSerialize:
      return "wrote a program for the cache";
    case Operation::kDestroyProgram:
      return "destroyed a program";
    case Operation::kOutputExtents:
      return "computed the extents of outputs";
    case Operation::kRefit:
      return "replaced weights";
    case Operation::kReadWeight:
      return "read back a weight";
    case Operation::kCreateInstance:
      return "created an instance";
    case Operation::kDestroyInstance:
      return "destroyed an instance";
    case Operation::kBind:
    case Operation::kExtents:
      return "bound memory";
    case Operation::kRun:
      return "ran";
    default:
      return "answered";
  }
}

}  // namespace backplane::isolate

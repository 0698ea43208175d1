// SPDX-License-Identifier: Apache-2.0
// Requests from the loader to a backend's process, and from that process to the loader during such a request.
#pragma once

#include <cstdint>

namespace backplane::isolate {

// The numbers are valid in one build of the loader: both sides belong to it.
enum class Operation : uint32_t {
  kReply = 1,
  // About the library and the backend.
  kLoad,
  kCreate,
  kDestroy,
  kCountDevices,
  kDeviceInfo,
  // About a device.
  kOpen,
  kClose,
  kHealth,
  kOpsets,
  kCoverage,
  kReview,
  kInfer,
  kCompile,
  kValidate,
  kDeserialize,
  // About a program.
  kDestroyProgram,
  kOutputExtents,
  kSerialize,
  kRefit,
  kReadWeight,
  // About an instance.
  kCreateInstance,
  kDestroyInstance,
  kBind,
  kExtents,
  kRun,
  // From the backend's process, during one of the above.
  kWeight,
  kWeightConsumed,
  kWeightHash,
  kSerializeGraph,
  kProgress,
  kOutput,
  kSpan,
};

// What the plugin did, such as "was created"; for messages such as "crashed while it was created".
const char* activity(Operation operation);

}  // namespace backplane::isolate

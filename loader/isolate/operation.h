// SPDX-License-Identifier: Apache-2.0
// Requests from the loader to a backend's process, and from that process to the loader during such a request.
#pragma once

#include <cstdint>

namespace backplane::isolate {

// The numbers hold for this build of the loader alone: both sides are part of it.
enum class Operation : uint32_t {
  kReply = 1,
  // Of the library and the backend.
  kLoad,
  kCreate,
  kDestroy,
  kCountDevices,
  kDeviceInfo,
  // Of a device.
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
  // Of a program.
  kDestroyProgram,
  kOutputExtents,
  kSerialize,
  kRefit,
  kReadWeight,
  // Of an instance.
  kCreateInstance,
  kDestroyInstance,
  kBind,
  kExtents,
  kRun,
  // From the backend's process, while it answers one of the above.
  kWeight,
  kWeightConsumed,
  kWeightHash,
  kSerializeGraph,
  kProgress,
  kOutput,
  kSpan,
};

// The plugin's activity: "was created". For texts such as "crashed while it …".
const char* activity(Operation operation);

}  // namespace backplane::isolate

// SPDX-License-Identifier: Apache-2.0
// The requests that the loader sends to a backend's process, and those that the process sends while it handles one.
#pragma once

#include <cstdint>

namespace backplane::isolate {

// The numbers may change with every build: both sides belong to the same build.
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
  // From the backend's process, while it handles one of the requests above.
  kWeight,
  kWeightConsumed,
  kWeightHash,
  kSerializeGraph,
  kProgress,
  kOutput,
  kSpan,
};

// The plugin's activity in an operation, such as "was created", for messages such as "crashed while it was created".
const char* activity(Operation operation);

}  // namespace backplane::isolate

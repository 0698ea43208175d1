// SPDX-License-Identifier: Apache-2.0
// Devices as ONNXIFI's backend ids, and queries of them.
#pragma once

#include "onnxifi/status.h"

namespace backplane::onnxifi {

// A device. As ONNXIFI requires, a device has the same id for the life of the process.
class BackendId {
 public:
  BackendId(Environment environment, Device device)
      : environment_(std::move(environment)), device_(std::move(device)) {}

  const Environment& environment() const { return environment_; }
  const Device& device() const { return device_; }
  // The kinds of memory that it uses without a copy: ONNXIFI_MEMORY_TYPE_*. Opens the device.
  onnxBitfield memory_types() const;

  // `acquire` counts a return by onnxGetBackendIDs; `release` undoes one of these, or returns false if none is left.
  void acquire();
  bool release();
  bool acquired() const;

 private:
  const Environment environment_;
  const Device device_;
  mutable std::mutex mutex_;
  uint64_t acquired_ = 0;
};

// All devices of this process by handle. Found by the first call.
const std::vector<std::pair<void*, std::shared_ptr<BackendId>>>& backend_ids();
// Null if `handle` is no id, or one that was released.
std::shared_ptr<BackendId> backend_id(void* handle);

// A device in use.
class Backend {
 public:
  // Throws INVALID_PROPERTY, UNSUPPORTED_PROPERTY and BACKEND_UNAVAILABLE. `properties` may be NULL.
  Backend(const BackendId& id, const uint64_t* properties);

  const Environment& environment() const { return environment_; }
  const Device& device() const { return device_; }

  // Compiles the model if the device runs all of it; throws the most specific status otherwise.
  Session compile(const Model& model) const;

 private:
  Environment environment_;
  Device device_;
};

// Parses a serialized ModelProto; `weights` are by name, in memory that `keep` owns. Throws INVALID_SIZE,
// INVALID_POINTER, INVALID_PROTOBUF, INVALID_MODEL, UNSUPPORTED_VERSION.
Model parse(const Environment& environment, size_t bytes, const void* model,
            const std::vector<bp_named_tensor_t>& weights = {}, std::shared_ptr<const void> keep = nullptr);
// Whether the device runs all of the model: SUCCESS, or the status of the first node that it does not support.
onnxStatus compatibility(const Environment& environment, const Device& device, const Model& model);

}  // namespace backplane::onnxifi

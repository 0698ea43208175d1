// SPDX-License-Identifier: Apache-2.0
// Devices as ONNXIFI's backend ids, and queries about them.
#pragma once

#include <atomic>

#include "onnxifi/status.h"

namespace backplane::onnxifi {

// A device as a backend id. ONNXIFI requires that a device keeps its id for the life of the process.
class BackendId {
 public:
  BackendId(Environment environment, Device device)
      : environment_(std::move(environment)), device_(std::move(device)) {}

  const Environment& environment() const { return environment_; }
  const Device& device() const { return device_; }
  // The kinds of memory that the device can use without a copy, ONNXIFI_MEMORY_TYPE_*. Opens the device.
  onnxBitfield memory_types() const;

  // `acquire` counts how often onnxGetBackendIDs returned the id. `release` lowers the count; it returns false if the
  // count is 0.
  void acquire() { ++acquired_; }
  bool release();
  bool acquired() const { return acquired_ != 0; }

 private:
  const Environment environment_;
  const Device device_;
  std::atomic<uint64_t> acquired_{0};
};

// All devices of this process, by handle. The first call finds them. Throws BACKEND_UNAVAILABLE in a child that was
// forked during that call.
const std::vector<std::pair<void*, std::shared_ptr<BackendId>>>& backend_ids();
// Null if `handle` is not an id, or has been released as often as it was returned.
std::shared_ptr<BackendId> backend_id(void* handle);

// A device in use, with the program's properties.
class Backend {
 public:
  // Throws INVALID_PROPERTY, UNSUPPORTED_PROPERTY or BACKEND_UNAVAILABLE. `properties` may be NULL.
  Backend(const BackendId& id, const uint64_t* properties);

  const Environment& environment() const { return environment_; }
  const Device& device() const { return device_; }

  // Compiles the model. If the device cannot run all of it, throws the most specific status.
  Session compile(const Model& model) const;

 private:
  Environment environment_;
  Device device_;
};

// Whether a serialized ModelProto has initializers; false if the bytes are not a protobuf.
bool has_initializers(size_t bytes, const void* model);
// Parses a serialized ModelProto. `weights` are matched by name, and their memory is owned by `keep`. Throws
// INVALID_SIZE, INVALID_POINTER, INVALID_PROTOBUF, INVALID_MODEL, UNSUPPORTED_VERSION, MISMATCHING_SHAPE or
// MISMATCHING_DATATYPE (the model contradicts its weights or the results of its operators), or the loader's error
// BP_NOT_FOUND if the model has no input for a weight.
Model parse(const Environment& environment, size_t bytes, const void* model,
            const std::vector<bp_named_tensor_t>& weights = {}, std::shared_ptr<const void> keep = nullptr);
// SUCCESS if the device can run all of the model, otherwise the status for the first node that it does not support.
onnxStatus compatibility(const Environment& environment, const Device& device, const Model& model);

}  // namespace backplane::onnxifi

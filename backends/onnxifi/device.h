// SPDX-License-Identifier: Apache-2.0
// A device of Backplane for one backend id of an ONNXIFI library. onnxGetBackendCompatibility decides which nodes the
// device supports: it is called with models of single nodes, and then of whole islands.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "backend_info.h"
#include "backplane/sdk.hpp"
#include "library.h"
#include "onnx_model.h"

namespace onnxifi_backend {

// How weights are passed to a library: inside the model, as tensor descriptors, or in the way that it accepts (kAuto).
enum class Weights { kAuto, kModel, kDescriptors };

class Device : public backplane::sdk::Device, public backplane::sdk::HostStreams {
 public:
  // `library` and `id` must outlive the device.
  Device(const backplane::sdk::Backend& backend, const Library& library, onnxBackendID id, const BackendInfo& reported,
         Weights weights);
  ~Device() override;

  void cover(backplane::sdk::Coverage& coverage) override;
  void review(const backplane::sdk::Compile& what, bp_review_t& out, std::string& why) override;
  std::unique_ptr<backplane::sdk::Program> compile(const backplane::sdk::Compile& what) override;
  bp_opsets_t opsets() override;
  void health() override;

  const Library& library() const { return library_; }
  onnxBackend backend() const { return backend_; }
  onnxBackendID backend_id() const { return id_; }
  Weights weights() const { return weights_; }
  const OnnxModel::Versions& versions() const { return versions_; }
  // Throws Error unless the call succeeded, and marks the device as lost if the backend is unavailable.
  void check(onnxStatus status, std::string_view call) const;

 private:
  // Why a model is not supported. Converts to false if the model is supported.
  struct Refusal {
    uint32_t reason = BP_REASON_NONE;
    std::string text;
    explicit operator bool() const { return reason != BP_REASON_NONE; }
  };
  Refusal refusal_of(const backplane::sdk::Node& node) const;
  Refusal query(OnnxModel& onnx_model);
  onnxStatus query(const std::string& model);

  const Library& library_;
  const onnxBackendID id_;
  const Weights weights_;
  OnnxModel::Versions versions_;
  std::vector<bp_opset_t> opsets_;
  onnxBackend backend_ = nullptr;
  mutable std::atomic<bool> is_lost_{false};

  std::mutex mutex_;
  std::unordered_map<std::string, onnxStatus> statuses_;  // keyed by a hash of the model
};

// Whether ONNXIFI has the data type.
bool is_expressible(bp_dtype_t dtype);

}  // namespace onnxifi_backend

// SPDX-License-Identifier: Apache-2.0
// Test code: a graph c = a + b on the device "cpu", through ONNXIFI's functions.
#pragma once

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "backplane/types.h"
#include "onnxifi/testing/structs.h"
#include "testing/onnx_writer.h"

namespace backplane::onnxifi {

// Must be set before the library first looks for backends.
inline const int kOnlyThese = setenv("BACKPLANE_SELECT", "org.backplane.cpu,org.backplane.null,cpu,null", 1);

inline constexpr uint64_t kN = 3;

// c = op(a, b), where all values have type float[n] and n is a number or a symbol.
inline std::string sum_model(std::string_view op = "Add", int64_t opset = 13,
                             const backplane::testing::onnx::Dim& n = backplane::testing::onnx::Dim(3)) {
  using namespace backplane::testing::onnx;  // NOLINT(google-build-using-namespace)
  return model_bytes({{"", opset}},
                     graph({node(op, {"a", "b"}, {"c"})},
                           {tensor_value("a", BP_DTYPE_FLOAT, {n}), tensor_value("b", BP_DTYPE_FLOAT, {n})},
                           {tensor_value("c", BP_DTYPE_FLOAT, {n})}));
}

inline std::vector<onnxBackendID> all_ids() {
  size_t count = 0;
  EXPECT_EQ(onnxGetBackendIDs(nullptr, &count), ONNXIFI_STATUS_FALLBACK);
  std::vector<onnxBackendID> ids(count);
  EXPECT_EQ(onnxGetBackendIDs(ids.data(), &count), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(count, ids.size());
  return ids;
}

inline std::string info_text(onnxBackendID id, onnxBackendInfo type) {
  size_t size = 0;
  EXPECT_EQ(onnxGetBackendInfo(id, type, nullptr, &size), ONNXIFI_STATUS_FALLBACK) << type;
  std::string text(size, '?');
  EXPECT_EQ(onnxGetBackendInfo(id, type, text.data(), &size), ONNXIFI_STATUS_SUCCESS) << type;
  EXPECT_EQ(size, text.size());
  return text;
}

inline uint64_t info_number(onnxBackendID id, onnxBackendInfo type) {
  uint64_t value = 0;
  size_t size = sizeof value;
  EXPECT_EQ(onnxGetBackendInfo(id, type, &value, &size), ONNXIFI_STATUS_SUCCESS) << type;
  return value;
}

inline onnxBackendID named(const std::string& name) {
  for (onnxBackendID id : all_ids()) {
    if (info_text(id, ONNXIFI_BACKEND_NAME) == "Backplane " + name) return id;
  }
  ADD_FAILURE() << "there is no device " << name;
  return nullptr;
}

class Onnxifi : public ::testing::Test {
 protected:
  void SetUp() override {
    id_ = named("cpu");
    ASSERT_EQ(onnxInitBackend(id_, nullptr, &backend_), ONNXIFI_STATUS_SUCCESS);
    const std::string model = sum_model();
    ASSERT_EQ(onnxInitGraph(backend_, nullptr, model.size(), model.data(), 0, nullptr, &graph_),
              ONNXIFI_STATUS_SUCCESS);
    in_ = {descriptor("a", a_), descriptor("b", b_)};
    out_ = {descriptor("c", c_)};
  }
  void TearDown() override {
    EXPECT_EQ(onnxReleaseGraph(graph_), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseBackend(backend_), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseBackendID(id_), ONNXIFI_STATUS_SUCCESS);
  }

  onnxEvent event(bool signalled = false) {
    onnxEvent event = nullptr;
    EXPECT_EQ(onnxInitEvent(backend_, &event), ONNXIFI_STATUS_SUCCESS);
    if (signalled) {
      EXPECT_EQ(onnxSignalEvent(event), ONNXIFI_STATUS_SUCCESS);
    }
    return event;
  }
  onnxStatus set_io() {
    return onnxSetGraphIO(graph_, static_cast<uint32_t>(in_.size()), in_.data(), static_cast<uint32_t>(out_.size()),
                          out_.data());
  }
  onnxStatus init_graph(const std::string& model, const onnxTensorDescriptorV1* weights = nullptr, uint32_t count = 0) {
    onnxGraph graph = &graph_;
    const onnxStatus status = onnxInitGraph(backend_, nullptr, model.size(), model.data(), count, weights, &graph);
    EXPECT_EQ(graph != nullptr, status == ONNXIFI_STATUS_SUCCESS);
    if (graph != nullptr) {
      EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
    }
    return status;
  }

  onnxBackendID id_ = nullptr;
  onnxBackend backend_ = nullptr;
  onnxGraph graph_ = nullptr;
  float a_[kN] = {1, 2, 3}, b_[kN] = {10, 20, 30}, c_[kN] = {};
  std::vector<onnxTensorDescriptorV1> in_, out_;
};

}  // namespace backplane::onnxifi

// SPDX-License-Identifier: Apache-2.0
#include "onnxifi/onnxifi.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "backplane/types.h"
#include "onnxifi/testing/calls.h"
#include "onnxifi/testing/structs.h"
#include "testing/onnx_writer.h"

namespace {

using namespace backplane::testing::onnx;  // NOLINT(google-build-using-namespace)
using ::testing::AnyOf;
using ::testing::HasSubstr;

// Must be set before the library first looks for backends.
const int kOnlyThese = setenv("BACKPLANE_SELECT", "org.backplane.cpu,org.backplane.null,cpu,null", 1);

static_assert(sizeof(onnxTensorDescriptorV1) == 56 && offsetof(onnxTensorDescriptorV1, buffer) == 48);
static_assert(sizeof(onnxMemoryFenceV1) == 24 && offsetof(onnxMemoryFenceV1, event) == 16);

using backplane::onnxifi::descriptor;
using backplane::onnxifi::fence;

constexpr uint64_t kN = 3;

// c = op(a, b), where all values have type float[n] and n is a number or a symbol.
std::string sum_model(std::string_view op = "Add", int64_t opset = 13, const Dim& n = Dim(3)) {
  return model_bytes({{"", opset}},
                     graph({node(op, {"a", "b"}, {"c"})},
                           {tensor_value("a", BP_DTYPE_FLOAT, {n}), tensor_value("b", BP_DTYPE_FLOAT, {n})},
                           {tensor_value("c", BP_DTYPE_FLOAT, {n})}));
}

std::vector<onnxBackendID> all_ids() {
  size_t count = 0;
  EXPECT_EQ(onnxGetBackendIDs(nullptr, &count), ONNXIFI_STATUS_FALLBACK);
  std::vector<onnxBackendID> ids(count);
  EXPECT_EQ(onnxGetBackendIDs(ids.data(), &count), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(count, ids.size());
  return ids;
}

std::string info_text(onnxBackendID id, onnxBackendInfo type) {
  size_t size = 0;
  EXPECT_EQ(onnxGetBackendInfo(id, type, nullptr, &size), ONNXIFI_STATUS_FALLBACK) << type;
  std::string text(size, '?');
  EXPECT_EQ(onnxGetBackendInfo(id, type, text.data(), &size), ONNXIFI_STATUS_SUCCESS) << type;
  EXPECT_EQ(size, text.size());
  return text;
}

uint64_t info_number(onnxBackendID id, onnxBackendInfo type) {
  uint64_t value = 0;
  size_t size = sizeof value;
  EXPECT_EQ(onnxGetBackendInfo(id, type, &value, &size), ONNXIFI_STATUS_SUCCESS) << type;
  return value;
}

onnxBackendID named(const std::string& name) {
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

TEST_F(Onnxifi, ListsDevicesWithTheRulesForSizes) {
  EXPECT_EQ(onnxGetBackendIDs(nullptr, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  size_t count = 1;
  onnxBackendID one = nullptr;
  EXPECT_EQ(onnxGetBackendIDs(&one, &count), ONNXIFI_STATUS_FALLBACK);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(one, nullptr);
  EXPECT_EQ(all_ids(), all_ids());  // ids do not change
}

TEST_F(Onnxifi, AReleasedIdIsNone) {
  const onnxBackendID null = named("null");
  while (onnxReleaseBackendID(null) == ONNXIFI_STATUS_SUCCESS) {
  }
  size_t size = 0;
  EXPECT_EQ(onnxGetBackendInfo(null, ONNXIFI_BACKEND_NAME, nullptr, &size), ONNXIFI_STATUS_INVALID_ID);
  EXPECT_EQ(onnxReleaseBackendID(null), ONNXIFI_STATUS_INVALID_ID);
  onnxBackend backend = this;
  EXPECT_EQ(onnxInitBackend(null, nullptr, &backend), ONNXIFI_STATUS_INVALID_ID);
  EXPECT_EQ(backend, nullptr);
  EXPECT_EQ(named("null"), null);
}

TEST_F(Onnxifi, DescribesTheDevice) {
  EXPECT_EQ(info_number(id_, ONNXIFI_BACKEND_ONNXIFI_VERSION), uint64_t{1} << 32);
  EXPECT_EQ(info_text(id_, ONNXIFI_BACKEND_NAME), "Backplane cpu");
  EXPECT_NE(info_text(id_, ONNXIFI_BACKEND_VENDOR), "");
  EXPECT_NE(info_text(id_, ONNXIFI_BACKEND_VERSION), "");
  EXPECT_EQ(info_text(id_, ONNXIFI_BACKEND_EXTENSIONS), "onnx_extension_function onnxSetIOAndRunGraph");
  EXPECT_NE(info_text(id_, ONNXIFI_BACKEND_DEVICE), "");
  EXPECT_EQ(info_number(id_, ONNXIFI_BACKEND_DEVICE_TYPE), ONNXIFI_DEVICE_TYPE_CPU);
  EXPECT_THAT(info_text(id_, ONNXIFI_BACKEND_ONNX_IR_VERSION), HasSubstr("3 4 5 6 7 8"));
  EXPECT_THAT(info_text(id_, ONNXIFI_BACKEND_OPSET_VERSION), HasSubstr("ai.onnx:2"));
  EXPECT_THAT(info_text(id_, ONNXIFI_BACKEND_OPSET_VERSION), HasSubstr(" ai.onnx.ml:"));
  constexpr uint64_t kSymbols = ONNXIFI_CAPABILITY_SYMBOLIC_BATCH_SIZE | ONNXIFI_CAPABILITY_SYMBOLIC_SIZE_TENSORS |
                                ONNXIFI_CAPABILITY_VARIABLE_BATCH_SIZE | ONNXIFI_CAPABILITY_VARIABLE_SIZE_OUTPUTS;
  EXPECT_EQ(info_number(id_, ONNXIFI_BACKEND_CAPABILITIES), ONNXIFI_CAPABILITY_THREAD_SAFE | kSymbols);
  EXPECT_EQ(info_number(named("null"), ONNXIFI_BACKEND_CAPABILITIES), uint64_t{ONNXIFI_CAPABILITY_THREAD_SAFE});
  EXPECT_EQ(info_number(id_, ONNXIFI_BACKEND_MEMORY_TYPES), ONNXIFI_MEMORY_TYPE_CPU);
  EXPECT_EQ(info_number(id_, ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES), ONNXIFI_SYNCHRONIZATION_EVENT);
  EXPECT_GT(info_number(id_, ONNXIFI_BACKEND_MEMORY_SIZE), 1u << 20);
  for (onnxBackendInfo type : {ONNXIFI_BACKEND_INIT_PROPERTIES, ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES,
                               ONNXIFI_BACKEND_MAX_GRAPH_SIZE, ONNXIFI_BACKEND_MAX_GRAPH_COUNT})
    info_number(id_, type);
  // Each attribute has a size, or is unknown for the device.
  for (onnxBackendInfo type = 30; type <= 46; ++type) {
    size_t size = 0;
    EXPECT_THAT(onnxGetBackendInfo(id_, type, nullptr, &size),
                AnyOf(ONNXIFI_STATUS_FALLBACK, ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE))
        << type;
  }
}

TEST_F(Onnxifi, InformationHasTheRulesForSizes) {
  size_t size = 0;
  EXPECT_EQ(onnxGetBackendInfo(nullptr, ONNXIFI_BACKEND_NAME, nullptr, &size), ONNXIFI_STATUS_INVALID_ID);
  EXPECT_EQ(onnxGetBackendInfo(id_, ONNXIFI_BACKEND_NAME, nullptr, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxGetBackendInfo(id_, 9, nullptr, &size), ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE);
  EXPECT_EQ(onnxGetBackendInfo(id_, -1, nullptr, &size), ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE);
  EXPECT_EQ(onnxGetBackendInfo(id_, ONNXIFI_BACKEND_CUDA_INDEX, nullptr, &size), ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE);
  char text[4] = "xyz";
  size = sizeof text;
  EXPECT_EQ(onnxGetBackendInfo(id_, ONNXIFI_BACKEND_NAME, text, &size), ONNXIFI_STATUS_FALLBACK);
  EXPECT_STREQ(text, "xyz");
  EXPECT_EQ(size, std::string_view("Backplane cpu").size());
}

TEST_F(Onnxifi, SaysWhyAModelDoesNotRun) {
  const auto compatibility = [](onnxBackendID id, const std::string& model) {
    return onnxGetBackendCompatibility(id, model.size(), model.data());
  };
  const std::string good = sum_model();
  EXPECT_EQ(compatibility(id_, good), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(compatibility(nullptr, good), ONNXIFI_STATUS_INVALID_ID);
  EXPECT_EQ(onnxGetBackendCompatibility(id_, 5, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxGetBackendCompatibility(id_, 0, good.data()), ONNXIFI_STATUS_INVALID_SIZE);
  EXPECT_EQ(compatibility(id_, "garbage"), ONNXIFI_STATUS_INVALID_PROTOBUF);
  EXPECT_EQ(compatibility(id_, good.substr(0, good.size() - 1)), ONNXIFI_STATUS_INVALID_PROTOBUF);
  EXPECT_EQ(compatibility(id_, sum_model("Add", 99)), ONNXIFI_STATUS_UNSUPPORTED_VERSION);
  const std::string later_format =
      model_bytes({{"", 13}},
                  graph({node("Relu", {"x"}, {"y"})}, {tensor_value("x", BP_DTYPE_FLOAT, {Dim(3)})},
                        {tensor_value("y", BP_DTYPE_FLOAT, {Dim(3)})}),
                  {}, 99);
  EXPECT_EQ(compatibility(id_, later_format), ONNXIFI_STATUS_UNSUPPORTED_VERSION);
  const std::string wrong =
      model_bytes({{"", 13}}, graph({node("Relu", {"x"}, {"y"})}, {}, {tensor_value("y", BP_DTYPE_FLOAT, {Dim(3)})}));
  EXPECT_EQ(compatibility(id_, wrong), ONNXIFI_STATUS_INVALID_MODEL);
  // Except in the first case, what the model declares about its output contradicts the operator.
  const auto declared = [](bp_dtype_t dtype, const std::vector<Dim>& extents) {
    return model_bytes({{"", 13}}, graph({node("Relu", {"x"}, {"y"})}, {tensor_value("x", BP_DTYPE_FLOAT, {Dim(3)})},
                                         {tensor_value("y", dtype, extents)}));
  };
  onnxGraph made = this;
  for (const auto& [model, status] :
       {std::pair(declared(BP_DTYPE_FLOAT, {Dim(3)}), ONNXIFI_STATUS_SUCCESS),
        std::pair(declared(BP_DTYPE_FLOAT, {Dim(4)}), ONNXIFI_STATUS_MISMATCHING_SHAPE),
        std::pair(declared(BP_DTYPE_FLOAT, {Dim(1), Dim(3)}), ONNXIFI_STATUS_MISMATCHING_SHAPE),
        std::pair(declared(BP_DTYPE_INT64, {Dim(3)}), ONNXIFI_STATUS_MISMATCHING_DATATYPE)}) {
    EXPECT_EQ(compatibility(id_, model), status);
    if (status == ONNXIFI_STATUS_SUCCESS) continue;
    EXPECT_EQ(onnxInitGraph(backend_, nullptr, model.size(), model.data(), 0, nullptr, &made), status);
    EXPECT_EQ(made, nullptr);
  }
  // The null backend supports Add but not Pow.
  EXPECT_EQ(compatibility(named("null"), sum_model("Pow")), ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_EQ(compatibility(named("null"), good), ONNXIFI_STATUS_SUCCESS);
}

TEST_F(Onnxifi, BackendsTakeTheirProperties) {
  onnxBackend backend = nullptr;
  EXPECT_EQ(onnxInitBackend(id_, nullptr, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  const uint64_t good[] = {ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION, ONNXIFI_OPTIMIZATION_LOW_POWER,
                           ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL, ONNXIFI_LOG_LEVEL_ERROR, ONNXIFI_BACKEND_PROPERTY_NONE};
  EXPECT_EQ(onnxInitBackend(id_, good, &backend), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_INVALID_BACKEND);
  const uint64_t invalid[] = {ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION, 17, 0};
  EXPECT_EQ(onnxInitBackend(id_, invalid, &backend), ONNXIFI_STATUS_INVALID_PROPERTY);
  EXPECT_EQ(backend, nullptr);
  const uint64_t invalid_level[] = {ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL, 0, 0};
  EXPECT_EQ(onnxInitBackend(id_, invalid_level, &backend), ONNXIFI_STATUS_INVALID_PROPERTY);
  for (uint64_t property :
       {uint64_t{ONNXIFI_BACKEND_CUDA_STREAM}, uint64_t{ONNXIFI_BACKEND_OPENCL_CONTEXT}, uint64_t{99}}) {
    const uint64_t unsupported[] = {property, 1, 0};
    EXPECT_EQ(onnxInitBackend(id_, unsupported, &backend), ONNXIFI_STATUS_UNSUPPORTED_PROPERTY) << property;
  }
}

TEST_F(Onnxifi, RunsWhenTheInputEventIsSignalled) {
  ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
  for (bool first : {true, false}) {
    c_[0] = 0;
    const onnxEvent ready = event(first);
    const onnxMemoryFenceV1 before = fence(ready);
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxRunGraph(graph_, &before, &after), ONNXIFI_STATUS_SUCCESS);
    if (!first) {
      onnxEventState state = 0;
      EXPECT_EQ(onnxGetEventState(after.event, &state), ONNXIFI_STATUS_SUCCESS);
      EXPECT_EQ(state, ONNXIFI_EVENT_STATE_NONSIGNALLED);
      EXPECT_EQ(c_[0], 0);
      EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
    }
    EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);  // the run keeps alive the objects that it needs
    EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
    onnxEventState state = 0;
    EXPECT_EQ(onnxGetEventState(after.event, &state), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(state, ONNXIFI_EVENT_STATE_SIGNALLED);
    EXPECT_THAT(c_, ::testing::ElementsAre(11, 22, 33));
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  }
}

TEST_F(Onnxifi, BindsByPositionWhereNamesAreLeftOut) {
  in_[0].name = nullptr;
  in_[1].name = out_[0].name = "";
  ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
  onnxMemoryFenceV1 after = fence();
  ASSERT_EQ(onnxSetIOAndRunGraph(graph_, 2, in_.data(), 1, out_.data(), &after), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(c_, ::testing::ElementsAre(11, 22, 33));
  EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
}

TEST_F(Onnxifi, RefusesWrongLocations) {
  struct Case {
    const char* what;
    onnxStatus status;
    std::function<void(std::vector<onnxTensorDescriptorV1>& in, std::vector<onnxTensorDescriptorV1>& out)> spoil;
  };
  static const uint64_t kZero[] = {0}, kFour[] = {4};
  const Case cases[] = {
      {"tag", ONNXIFI_STATUS_UNSUPPORTED_TAG, [](auto& in, auto&) { in[0].tag = 7; }},
      {"name", ONNXIFI_STATUS_INVALID_NAME, [](auto& in, auto&) { in[0].name = "z"; }},
      {"name twice", ONNXIFI_STATUS_INVALID_NAME, [](auto& in, auto&) { in[0].name = "b"; }},
      {"too many", ONNXIFI_STATUS_INVALID_NAME, [](auto& in, auto& out) { in.push_back(out[0]); }},
      {"missing input", ONNXIFI_STATUS_UNIDENTIFIED_NAME, [](auto& in, auto&) { in.pop_back(); }},
      {"data type", ONNXIFI_STATUS_INVALID_DATATYPE, [](auto& in, auto&) { in[0].dataType = 9; }},
      {"no data type", ONNXIFI_STATUS_INVALID_DATATYPE, [](auto& in, auto&) { in[0].dataType = 0; }},
      {"other data type", ONNXIFI_STATUS_MISMATCHING_DATATYPE,
       [](auto& in, auto&) { in[0].dataType = ONNXIFI_DATATYPE_INT32; }},
      {"memory type", ONNXIFI_STATUS_INVALID_MEMORY_TYPE, [](auto& in, auto&) { in[0].memoryType = 3; }},
      {"other memory type", ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE,
       [](auto& in, auto&) { in[0].memoryType = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER; }},
      {"texture", ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE,
       [](auto&, auto& out) { out[0].memoryType = ONNXIFI_MEMORY_TYPE_OPENGLES_TEXTURE_2D; }},
      {"extent 0", ONNXIFI_STATUS_INVALID_SHAPE, [](auto& in, auto&) { in[0].shape = kZero; }},
      {"no extents", ONNXIFI_STATUS_INVALID_SHAPE, [](auto& in, auto&) { in[0].shape = nullptr; }},
      {"rank beyond all", ONNXIFI_STATUS_INVALID_SHAPE, [](auto& in, auto&) { in[0].dimensions = 1000000; }},
      {"other extents", ONNXIFI_STATUS_MISMATCHING_SHAPE, [](auto& in, auto&) { in[0].shape = kFour; }},
      {"other rank", ONNXIFI_STATUS_MISMATCHING_SHAPE, [](auto&, auto& out) { out[0].dimensions = 0; }},
      {"NULL memory", ONNXIFI_STATUS_INVALID_MEMORY_LOCATION, [](auto& in, auto&) { in[0].buffer = 0; }},
  };
  const auto in = in_, out = out_;
  for (const Case& one : cases) {
    in_ = in, out_ = out;
    ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
    one.spoil(in_, out_);
    EXPECT_EQ(set_io(), one.status) << one.what;
    // After an error, the memory set earlier is not used either.
    const onnxEvent ready = event(true);
    const onnxMemoryFenceV1 before = fence(ready);
    onnxMemoryFenceV1 after = fence();
    EXPECT_EQ(onnxRunGraph(graph_, &before, &after), ONNXIFI_STATUS_UNIDENTIFIED_NAME) << one.what;
    EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  }
  in_ = in, out_ = out;
  EXPECT_EQ(onnxSetGraphIO(graph_, 2, nullptr, 1, out_.data()), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxSetGraphIO(graph_, 2, in_.data(), 1, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxSetGraphIO(graph_, 2, in_.data(), 0, out_.data()), ONNXIFI_STATUS_UNIDENTIFIED_NAME);
  EXPECT_EQ(onnxSetGraphIO(backend_, 2, in_.data(), 1, out_.data()), ONNXIFI_STATUS_INVALID_GRAPH);
}

TEST_F(Onnxifi, RefusesWrongFences) {
  ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
  const onnxEvent ready = event(true);
  const onnxMemoryFenceV1 good = fence(ready);
  onnxMemoryFenceV1 after = fence();
  EXPECT_EQ(onnxRunGraph(graph_, nullptr, &after), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxRunGraph(graph_, &good, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxRunGraph(nullptr, &good, &after), ONNXIFI_STATUS_INVALID_GRAPH);
  onnxMemoryFenceV1 bad = good;
  bad.tag = 0;
  EXPECT_EQ(onnxRunGraph(graph_, &bad, &after), ONNXIFI_STATUS_UNSUPPORTED_TAG);
  bad = good, bad.type = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  EXPECT_EQ(onnxRunGraph(graph_, &bad, &after), ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE);
  bad = good, bad.type = 77;
  EXPECT_EQ(onnxRunGraph(graph_, &bad, &after), ONNXIFI_STATUS_INVALID_FENCE_TYPE);
  bad = fence();
  EXPECT_EQ(onnxRunGraph(graph_, &bad, &after), ONNXIFI_STATUS_INVALID_EVENT);
  bad = fence(graph_);
  EXPECT_EQ(onnxRunGraph(graph_, &bad, &after), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(after.event, nullptr);
  EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_INVALID_STATE);
  EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(onnxWaitEvent(ready), ONNXIFI_STATUS_INVALID_EVENT);
  onnxEventState state = ONNXIFI_EVENT_STATE_SIGNALLED;
  EXPECT_EQ(onnxGetEventState(ready, &state), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(state, ONNXIFI_EVENT_STATE_INVALID);
  const onnxEvent other = event();
  EXPECT_EQ(onnxGetEventState(other, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxReleaseEvent(other), ONNXIFI_STATUS_SUCCESS);
  onnxEvent none = this;
  EXPECT_EQ(onnxInitEvent(nullptr, &none), ONNXIFI_STATUS_INVALID_BACKEND);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(onnxInitEvent(backend_, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
}

TEST_F(Onnxifi, CopiesWeights) {
  auto weight = std::make_unique<float[]>(kN);
  std::copy_n(b_, kN, weight.get());
  const onnxTensorDescriptorV1 b = descriptor("b", weight.get());
  const std::string model = sum_model();
  onnxGraph graph = nullptr;
  ASSERT_EQ(onnxInitGraph(backend_, nullptr, model.size(), model.data(), 1, &b, &graph), ONNXIFI_STATUS_SUCCESS);
  weight.reset();
  onnxMemoryFenceV1 after = fence();
  ASSERT_EQ(onnxSetIOAndRunGraph(graph, 1, in_.data(), 1, out_.data(), &after), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(c_, ::testing::ElementsAre(11, 22, 33));
  EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
}

TEST_F(Onnxifi, RefusesWrongModelsAndWeights) {
  const std::string model = sum_model();
  EXPECT_EQ(init_graph("garbage"), ONNXIFI_STATUS_INVALID_PROTOBUF);
  EXPECT_EQ(init_graph(""), ONNXIFI_STATUS_INVALID_SIZE);
  EXPECT_EQ(init_graph(sum_model("Add", 99)), ONNXIFI_STATUS_UNSUPPORTED_VERSION);
  EXPECT_EQ(init_graph(model, nullptr, 1), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxInitGraph(backend_, nullptr, 5, nullptr, 0, nullptr, &graph_), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxInitGraph(backend_, nullptr, model.size(), model.data(), 0, nullptr, nullptr),
            ONNXIFI_STATUS_INVALID_POINTER);
  ASSERT_EQ(onnxInitGraph(backend_, nullptr, model.size(), model.data(), 0, nullptr, &graph_), ONNXIFI_STATUS_SUCCESS);
  const uint64_t properties[] = {5, 0, 0};
  onnxGraph none = nullptr;
  EXPECT_EQ(onnxInitGraph(backend_, properties, model.size(), model.data(), 0, nullptr, &none),
            ONNXIFI_STATUS_UNSUPPORTED_PROPERTY);
  EXPECT_EQ(onnxInitGraph(graph_, nullptr, model.size(), model.data(), 0, nullptr, &none),
            ONNXIFI_STATUS_INVALID_BACKEND);
  // The count of weights may include the model's own initializers, which need no descriptors.
  const std::string with_weight =
      model_bytes({{"", 13}}, graph({node("Add", {"a", "b"}, {"c"})}, {tensor_value("a", BP_DTYPE_FLOAT, {Dim(3)})},
                                    {tensor_value("c", BP_DTYPE_FLOAT, {Dim(3)})},
                                    {tensor<float>("b", BP_DTYPE_FLOAT, {3}, {2, 2, 2})}));
  EXPECT_EQ(init_graph(with_weight, nullptr, 1), ONNXIFI_STATUS_SUCCESS);

  onnxTensorDescriptorV1 b = descriptor("b", b_);
  b.dataType = ONNXIFI_DATATYPE_INT32;
  EXPECT_EQ(init_graph(model, &b, 1), ONNXIFI_STATUS_MISMATCHING_DATATYPE);
  static const uint64_t kFour[] = {4}, kZero[] = {0};
  const float four[4] = {};
  b = descriptor("b", four, kFour);
  EXPECT_EQ(init_graph(model, &b, 1), ONNXIFI_STATUS_MISMATCHING_SHAPE);
  b = descriptor("b", b_, kZero);
  EXPECT_EQ(init_graph(model, &b, 1), ONNXIFI_STATUS_INVALID_SHAPE);
  b = descriptor("b", b_), b.memoryType = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER;
  EXPECT_EQ(init_graph(model, &b, 1), ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE);
  b = descriptor("b", nullptr);
  EXPECT_EQ(init_graph(model, &b, 1), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  b = descriptor("b", b_), b.tag = 1;
  EXPECT_EQ(init_graph(model, &b, 1), ONNXIFI_STATUS_UNSUPPORTED_TAG);
}

// The memory of a weight is read only after its extents were compared with the model's.
TEST_F(Onnxifi, RefusesAWeightThatEndsEarlierThanItsDescriptorSays) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const two = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(two, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(two) + page, page, PROT_NONE), 0);
  const auto* const last = reinterpret_cast<const float*>(static_cast<char*>(two) + page) - kN;
  const onnxTensorDescriptorV1 right = descriptor("b", last);
  EXPECT_EQ(init_graph(sum_model(), &right, 1), ONNXIFI_STATUS_SUCCESS);
  static const uint64_t kFour[] = {4}, kHuge[] = {uint64_t{1} << 40};
  for (const uint64_t* shape : {kFour, kHuge}) {
    onnxTensorDescriptorV1 wrong = right;
    wrong.shape = shape;
    EXPECT_EQ(init_graph(sum_model(), &wrong, 1), ONNXIFI_STATUS_MISMATCHING_SHAPE);
  }
  EXPECT_EQ(munmap(two, 2 * page), 0);
}

// ONNXIFI has no descriptors of bool tensors, so a graph cannot have them as inputs or outputs. Between nodes they are
// accepted.
TEST_F(Onnxifi, RefusesInputsAndOutputsWithoutADescriptor) {
  const auto dims = {Dim(3)};
  const auto compared = [&](bool is_output) {
    const std::string greater = node("Greater", {"a", "b"}, {"is"}),
                      cast = node("Cast", {"is"}, {"c"}, {int_attribute("to", 1)});
    return model_bytes(
        {{"", 13}},
        graph({greater, cast}, {tensor_value("a", BP_DTYPE_FLOAT, dims), tensor_value("b", BP_DTYPE_FLOAT, dims)},
              {is_output ? tensor_value("is", BP_DTYPE_BOOL, dims) : tensor_value("c", BP_DTYPE_FLOAT, dims)}));
  };
  EXPECT_EQ(init_graph(compared(false)), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(init_graph(compared(true)), ONNXIFI_STATUS_UNSUPPORTED_DATATYPE);
}

// A weight is either an initializer of the model or has one descriptor.
TEST_F(Onnxifi, RefusesWeightsThatAreGivenTwice) {
  const std::string model = sum_model();
  const auto with_initializer = [](const char* name) {
    return model_bytes(
        {{"", 13}},
        graph({node("Add", {"a", "b"}, {"x"}), node("Add", {"x", "w"}, {"c"})},
              {tensor_value("a", BP_DTYPE_FLOAT, {Dim(3)}), tensor_value("b", BP_DTYPE_FLOAT, {Dim(3)}),
               tensor_value("w", BP_DTYPE_FLOAT, {Dim(3)})},
              {tensor_value("c", BP_DTYPE_FLOAT, {Dim(3)})}, {tensor<float>(name, BP_DTYPE_FLOAT, {3}, {2, 2, 2})}));
  };
  const onnxTensorDescriptorV1 both[] = {descriptor("a", a_), descriptor("b", b_)};
  EXPECT_EQ(init_graph(model, both, 2), ONNXIFI_STATUS_SUCCESS);
  const onnxTensorDescriptorV1 twice[] = {both[1], both[1]};
  EXPECT_EQ(init_graph(model, twice, 2), ONNXIFI_STATUS_INVALID_NAME);
  const onnxTensorDescriptorV1 other = descriptor("z", b_), of_node = descriptor("c", b_);
  EXPECT_EQ(init_graph(model, &other, 1), ONNXIFI_STATUS_INVALID_NAME);
  EXPECT_EQ(init_graph(model, &of_node, 1), ONNXIFI_STATUS_INVALID_NAME);
  // With descriptors of weights, the model must not have initializers, whatever their names are.
  EXPECT_EQ(init_graph(with_initializer("w")), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(init_graph(with_initializer("b"), &both[1], 1), ONNXIFI_STATUS_INVALID_MODEL);
  EXPECT_EQ(init_graph(with_initializer("w"), &both[1], 1), ONNXIFI_STATUS_INVALID_MODEL);
  onnxTensorDescriptorV1 tag = both[1];
  tag.tag = 1;
  EXPECT_EQ(init_graph(with_initializer("w"), &tag, 1), ONNXIFI_STATUS_INVALID_MODEL);
  EXPECT_EQ(init_graph(with_initializer("w"), both, 0), ONNXIFI_STATUS_SUCCESS);  // no descriptors
}

TEST_F(Onnxifi, ADimensionOfTheBatchIsGivenWithTheLocations) {
  const std::string model = sum_model("Add", 13, Dim("N"));
  onnxGraph graph = nullptr;
  ASSERT_EQ(onnxInitGraph(backend_, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
  for (uint64_t n : {uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
    const uint64_t shape[] = {n};
    const onnxTensorDescriptorV1 in[] = {descriptor("a", a_, shape), descriptor("b", b_, shape)};
    const onnxTensorDescriptorV1 out = descriptor("c", c_, shape);
    c_[n - 1] = 0;
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxSetIOAndRunGraph(graph, 2, in, 1, &out, &after), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(c_[n - 1], a_[n - 1] + b_[n - 1]);
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  }
  const uint64_t two[] = {2};
  const onnxTensorDescriptorV1 in[] = {descriptor("a", a_), descriptor("b", b_, two)};
  EXPECT_EQ(onnxSetGraphIO(graph, 2, in, 1, out_.data()), ONNXIFI_STATUS_MISMATCHING_SHAPE);
  const onnxTensorDescriptorV1 out = descriptor("c", c_, two);  // the inputs have 3
  EXPECT_EQ(onnxSetGraphIO(graph, 2, in_.data(), 1, &out), ONNXIFI_STATUS_MISMATCHING_SHAPE);
  EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
}

// Several runs with different memory are in flight, and several threads wait for them in reverse order.
TEST_F(Onnxifi, ManyRunsAreInFlight) {
  constexpr int kRuns = 8;
  float results[kRuns][kN] = {};
  const onnxEvent ready = event();
  const onnxMemoryFenceV1 before = fence(ready);
  std::vector<onnxMemoryFenceV1> after(kRuns, fence());
  for (int i = 0; i < kRuns; ++i) {
    out_[0] = descriptor("c", results[i - i % 2]);  // runs 0 and 1 write to the same memory, as do 2 and 3, and so on
    ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxRunGraph(graph_, &before, &after[i]), ONNXIFI_STATUS_SUCCESS);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = kRuns - 1; i >= 0; --i) EXPECT_EQ(onnxWaitEvent(after[i].event), ONNXIFI_STATUS_SUCCESS);
    });
  }
  EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kRuns; i += 2) EXPECT_THAT(results[i], ::testing::ElementsAre(11, 22, 33));
  EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  for (const onnxMemoryFenceV1& each : after) EXPECT_EQ(onnxReleaseEvent(each.event), ONNXIFI_STATUS_SUCCESS);
}

// Runs that are not waited for, whose events the program has released, use a bounded number of threads and run in
// order.
TEST_F(Onnxifi, RunsBeyondALimitWaitForOthers) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  constexpr int kRuns = 500;
  const auto before_all = threads();
  std::vector<float> sums(kN * kRuns);
  const onnxEvent ready = event();
  const onnxMemoryFenceV1 before = fence(ready);
  for (int i = 0; i < kRuns; ++i) {  // each run but the first adds b to the result of the one before it
    in_[0] = descriptor("a", i == 0 ? a_ : sums.data() + kN * (i - 1));
    out_[0] = descriptor("c", sums.data() + kN * i);
    ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxRunGraph(graph_, &before, &after), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  }
  EXPECT_LT(threads() - before_all, 100);
  EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseGraph(graph_), ONNXIFI_STATUS_SUCCESS);  // waits for all of them
  const std::string model = sum_model();
  ASSERT_EQ(onnxInitGraph(backend_, nullptr, model.size(), model.data(), 0, nullptr, &graph_), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(std::vector(sums.end() - kN, sums.end()), ::testing::ElementsAre(5001, 10002, 15003));
}

// In a child that the program forks, no thread ends the runs that are in flight in the parent.
TEST_F(Onnxifi, AForkedChildDoesNotWaitForRunsOfItsParent) {
  ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
  const onnxEvent ready = event();
  const onnxMemoryFenceV1 before = fence(ready);
  onnxMemoryFenceV1 after = fence();
  ASSERT_EQ(onnxRunGraph(graph_, &before, &after), ONNXIFI_STATUS_SUCCESS);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // ends a child that hangs
    const bool is_right = onnxWaitEvent(after.event) == ONNXIFI_STATUS_BACKEND_UNAVAILABLE &&
                          onnxReleaseGraph(graph_) == ONNXIFI_STATUS_SUCCESS;
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  for (const onnxEvent each : {after.event, ready}) EXPECT_EQ(onnxReleaseEvent(each), ONNXIFI_STATUS_SUCCESS);
}

// Other threads of the parent use the tables of handles and destroy objects all the time, so that a fork finds each of
// their locks held sooner or later.
TEST_F(Onnxifi, AForkedChildReleasesWhatItWantsWhileThreadsOfItsParentWork) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!ends) {
        onnxEvent one = nullptr;
        onnxInitEvent(backend_, &one);
        onnxReleaseEvent(one);
      }
    });
  }
  int hung = 0;
  for (int i = 0; i < 200 && hung == 0; ++i) {
    const onnxEvent left = event(true);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // ends a child that hangs
      const bool is_right =
          onnxReleaseEvent(left) == ONNXIFI_STATUS_SUCCESS && onnxReleaseEvent(left) == ONNXIFI_STATUS_INVALID_EVENT &&
          onnxReleaseGraph(graph_) == ONNXIFI_STATUS_SUCCESS && onnxReleaseBackend(backend_) == ONNXIFI_STATUS_SUCCESS;
      _exit(is_right ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    hung += status != 0;
    EXPECT_EQ(onnxReleaseEvent(left), ONNXIFI_STATUS_SUCCESS);
  }
  EXPECT_EQ(hung, 0) << "after some of the forks, a child hung or got a wrong status";
  ends = true;
  for (std::thread& thread : threads) thread.join();
}

// The same struct is the fence before the run and after it.
TEST_F(Onnxifi, AFenceMayBeUsedTwice) {
  ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
  const onnxEvent ready = event(true);
  onnxMemoryFenceV1 both = fence(ready);
  ASSERT_EQ(onnxRunGraph(graph_, &both, &both), ONNXIFI_STATUS_SUCCESS);
  EXPECT_NE(both.event, ready);
  EXPECT_EQ(onnxWaitEvent(both.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(c_[2], 33);
  for (const onnxEvent each : {both.event, ready}) EXPECT_EQ(onnxReleaseEvent(each), ONNXIFI_STATUS_SUCCESS);
}

TEST_F(Onnxifi, RefusesMemoryThatIsNotAligned) {
  alignas(float) char bytes[sizeof(float) * (kN + 1)] = {};
  const auto* const odd = reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(bytes) + 1);
  in_[0] = descriptor("a", odd);
  EXPECT_EQ(set_io(), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  in_[0] = descriptor("a", a_);
  out_[0] = descriptor("c", odd);
  EXPECT_EQ(set_io(), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
}

// An output takes the place of an input, or of a part of one, in each of two runs.
TEST_F(Onnxifi, AnOutputMayOverwriteAnInput) {
  struct Case {
    const char* what;
    ptrdiff_t output;                // the index of the first element of c; that of a is 2
    std::vector<float> once, twice;  // all memory after one run, and after two
  };
  const Case cases[] = {
      {"the input itself", 2, {0, 0, 11, 22, 33, 0, 0}, {0, 0, 21, 42, 63, 0, 0}},
      {"its first elements", 1, {0, 11, 22, 33, 3, 0, 0}, {0, 32, 53, 33, 3, 0, 0}},
      {"its last element", 4, {0, 0, 1, 2, 11, 22, 33}, {0, 0, 1, 2, 11, 22, 41}},
      {"all but its first", 3, {0, 0, 1, 11, 22, 33, 0}, {0, 0, 1, 11, 31, 52, 0}},
  };
  for (const char* const device : {"cpu", "null"}) {
    onnxBackend backend = nullptr;
    onnxGraph graph = nullptr;
    const std::string model = sum_model();
    ASSERT_EQ(onnxInitBackend(named(device), nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
    for (const Case& one : cases) {
      std::vector<float> memory = {0, 0, 1, 2, 3, 0, 0};
      in_[0] = descriptor("a", memory.data() + 2);
      out_[0] = descriptor("c", memory.data() + one.output);
      ASSERT_EQ(onnxSetGraphIO(graph, 2, in_.data(), 1, out_.data()), ONNXIFI_STATUS_SUCCESS);
      for (const std::vector<float>* expected : {&one.once, &one.twice}) {
        const onnxEvent ready = event(true);
        const onnxMemoryFenceV1 before = fence(ready);
        onnxMemoryFenceV1 after = fence();
        ASSERT_EQ(onnxRunGraph(graph, &before, &after), ONNXIFI_STATUS_SUCCESS);
        EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS) << device << ", " << one.what;
        EXPECT_EQ(memory, *expected) << device << ", " << one.what;
        EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
        EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
      }
    }
    EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
  }
}

// Threads set locations and run in one call, each with its own output. No run may use the locations of another thread.
TEST_F(Onnxifi, SettingLocationsAndRunningIsOneStep) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const float a[kN] = {static_cast<float>(t), 1, 2};
      float c[kN] = {};
      const onnxTensorDescriptorV1 in[] = {descriptor("a", a), descriptor("b", b_)}, out = descriptor("c", c);
      for (int i = 0; i < 1000 && !HasFailure(); ++i) {
        c[0] = -1;
        onnxMemoryFenceV1 after = fence();
        ASSERT_EQ(onnxSetIOAndRunGraph(graph_, 2, in, 1, &out, &after), ONNXIFI_STATUS_SUCCESS);
        EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
        EXPECT_EQ(c[0], static_cast<float>(t) + 10) << "run " << i << " of thread " << t;
        EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Onnxifi, ReleasingAGraphWaitsForItsRuns) {
  const std::string model = sum_model();
  for (int i = 0; i < 50; ++i) {
    onnxGraph graph = nullptr;
    ASSERT_EQ(onnxInitGraph(backend_, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
    c_[2] = 0;
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxSetIOAndRunGraph(graph, 2, in_.data(), 1, out_.data(), &after), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(c_[2], 33);
    EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_INVALID_GRAPH);
    EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  }
}

TEST_F(Onnxifi, FindsFunctionsByNameWithAndWithoutSuffix) {
  onnxExtensionFunctionPointer function = nullptr;
  for (onnxBackendID id : {onnxBackendID{nullptr}, id_}) {
    for (const char* name : {"onnxSetIOAndRunGraph", "onnxSetIOAndRunGraphFunction"}) {
      EXPECT_EQ(onnxGetExtensionFunctionAddress(id, name, &function), ONNXIFI_STATUS_SUCCESS);
      EXPECT_EQ(reinterpret_cast<void*>(function), reinterpret_cast<void*>(&onnxSetIOAndRunGraph));
    }
  }
  EXPECT_EQ(onnxGetExtensionFunctionAddress(nullptr, "onnxWaitEventFor", &function), ONNXIFI_STATUS_UNIDENTIFIED_NAME);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(onnxGetExtensionFunctionAddress(nullptr, nullptr, &function), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxGetExtensionFunctionAddress(nullptr, "x", nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxGetExtensionFunctionAddress(graph_, "onnxSetIOAndRunGraph", &function), ONNXIFI_STATUS_INVALID_ID);
}

TEST_F(Onnxifi, NoOrderOfCallsBreaksIt) {
  std::map<onnxStatus, int> statuses;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    backplane::onnxifi::Calls calls(id_, sum_model());
    for (int i = 0; i < 200; ++i) ++statuses[calls.call([&] { return static_cast<uint32_t>(random()); })];
  }
  EXPECT_GT(statuses[ONNXIFI_STATUS_SUCCESS], 200);
  EXPECT_EQ(statuses[ONNXIFI_STATUS_INTERNAL_ERROR], 0);
  for (onnxStatus status : {ONNXIFI_STATUS_INVALID_GRAPH, ONNXIFI_STATUS_INVALID_EVENT, ONNXIFI_STATUS_INVALID_BACKEND,
                            ONNXIFI_STATUS_INVALID_ID, ONNXIFI_STATUS_INVALID_PROTOBUF})
    EXPECT_GT(statuses[status], 0) << std::hex << status;
}

}  // namespace

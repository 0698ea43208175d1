// SPDX-License-Identifier: Apache-2.0
#include "onnxifi/onnxifi.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <random>

#include "onnxifi/testing/adder.h"
#include "onnxifi/testing/calls.h"

namespace backplane::onnxifi {
namespace {

using namespace backplane::testing::onnx;  // NOLINT(google-build-using-namespace)
using ::testing::AnyOf;
using ::testing::HasSubstr;

static_assert(sizeof(onnxTensorDescriptorV1) == 56 && offsetof(onnxTensorDescriptorV1, buffer) == 48);
static_assert(sizeof(onnxMemoryFenceV1) == 24 && offsetof(onnxMemoryFenceV1, event) == 16);

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

// The memory of a weight is read only after its extents have been compared with the model's.
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
}  // namespace backplane::onnxifi

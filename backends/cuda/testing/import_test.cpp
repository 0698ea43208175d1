// SPDX-License-Identifier: Apache-2.0
// Memory that a program allocated with CUDA is bound through loader.h and through ONNXIFI.
#include <gmock/gmock.h>

#include <array>
#include <cstdlib>

#include "backplane/sdk/onnx.hpp"
#include "onnxifi/onnxifi.h"
#include "testing/client_fixture.h"
#include "testing/standin/cuda.h"

namespace backplane::cuda::testing {
namespace {

using ::testing::HasSubstr;

// Must be set before libonnxifi.so first looks for backends.
const int kOnlyThese = setenv("BACKPLANE_SELECT", "cuda,cpu", 1);

constexpr size_t kN = 3, kBytes = kN * sizeof(float);
using Values = std::array<float, kN>;

// c = -a, both float[3].
Model neg_model() {
  Graph graph;
  return graph.finish({graph.node("Neg", "c", {graph.input("a", BP_DTYPE_FLOAT, {kN})})});
}

class Import : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPushCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&in_, kBytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&out_, kBytes), CUDA_SUCCESS);
    write(in_, {1, 2, 3});
    write(out_, {});
  }
  void TearDown() override {
    EXPECT_EQ(cuMemFree(in_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(out_), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxPopCurrent(&context_), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }
  static void write(CUdeviceptr to, const Values& values) {
    EXPECT_EQ(cuMemcpyHtoDAsync(to, values.data(), kBytes, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  }
  static Values read(CUdeviceptr from) {
    Values values = {};
    EXPECT_EQ(cuMemcpyDtoHAsync(values.data(), from, kBytes, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    return values;
  }
  static Environment env() {
    return environment({BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cuda.so"},
                       {{"cuda.tile", "4x4x2/16:8x8"}, {"cuda.winograd", "never"}});
  }
  // Options with which the loader uses reported costs and measures nothing, as the stand-in is slow.
  static SessionOptions reported() {
    SessionOptions how;
    how.options["loader.costs"] = "reported";
    return how;
  }
  static Buffer import_of(const Environment& env, uint64_t address, uint64_t bytes, uint64_t offset = 0) {
    const Device device = env.devices().at(0);
    for (uint32_t space = 0; space < device.info.space_count; ++space) {
      bp_space_t what{};
      what.size = sizeof what;
      client::detail::call(api().memory_space, env.get(), device.info.id, space, &what);
      if (what.import_count != 0)
        return env.import_memory(device.info.id,
                                 {sizeof(bp_external_t), BP_EXTERNAL_CUDA_POINTER, address, bytes, offset}, space);
    }
    throw std::logic_error("no space imports memory");
  }

  CUcontext context_ = nullptr;
  CUdeviceptr in_ = 0, out_ = 0;
};

TEST_F(Import, MemoryIsBoundWithoutCopies) {
  const Environment env = Import::env();
  Exec exec = env.compile(neg_model(), reported()).exec();
  const Buffer a = import_of(env, in_, kBytes), c = import_of(env, out_, kBytes);
  const int64_t extents[] = {kN};
  for (const auto& [slot, buffer] : {std::pair<uint32_t, const Buffer*>{0, &a}, {BP_SLOT_OUTPUT, &c}}) {
    bp_tensor_t tensor{sizeof tensor, BP_DTYPE_FLOAT, 1, BP_LAYOUT_DENSE, extents};
    tensor.buffer = buffer->abi();
    exec.bind_memory(slot, tensor);
  }
  const uint64_t in = standin_calls("cuMemcpyHtoDAsync_v2"), out = standin_calls("cuMemcpyDtoHAsync_v2");
  exec.run();
  EXPECT_EQ(standin_calls("cuMemcpyHtoDAsync_v2"), in);
  EXPECT_EQ(standin_calls("cuMemcpyDtoHAsync_v2"), out);
  EXPECT_EQ(read(out_), (Values{-1, -2, -3}));
}

// A kernel that accesses an element at an address that is not a multiple of its size makes a GPU unusable.
TEST_F(Import, MemoryThatIsNotAlignedToAnElementIsCopied) {
  constexpr uint64_t kShift = 2;
  CUdeviceptr in = 0, out = 0;
  for (CUdeviceptr* each : {&in, &out}) ASSERT_EQ(cuMemAlloc(each, kShift + kBytes), CUDA_SUCCESS);
  write(in + kShift, {1, 2, 3});
  {
    const Environment env = Import::env();
    Exec exec = env.compile(neg_model(), reported()).exec();
    const Buffer a = import_of(env, in + kShift, kBytes), c = import_of(env, out, kBytes, kShift);
    const Buffer d = import_of(env, out + kShift, kBytes);
    exec.bind_memory(0, a.tensor(BP_DTYPE_FLOAT, {kN}));
    for (const Buffer* each : {&c, &d}) {
      write(out + kShift, {});
      exec.bind_memory(BP_SLOT_OUTPUT, each->tensor(BP_DTYPE_FLOAT, {kN}));
      const uint64_t copies = standin_calls("cuMemcpyDtoDAsync_v2");
      exec.run();
      EXPECT_EQ(standin_calls("cuMemcpyDtoDAsync_v2"), copies + 2);
      EXPECT_EQ(read(out + kShift), (Values{-1, -2, -3}));
    }
  }
  for (const CUdeviceptr each : {in, out}) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
}

TEST_F(Import, OnlyMemoryOfTheDeviceIsAccepted) {
  const Environment env = Import::env();
  float host = 0;
  CUdeviceptr freed = 0;
  ASSERT_EQ(cuMemAlloc(&freed, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(freed), CUDA_SUCCESS);
  for (const uint64_t address : {uint64_t{0}, reinterpret_cast<uint64_t>(&host), uint64_t{freed}}) {
    const Error error = failure([&] { import_of(env, address, sizeof host); });
    EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
    EXPECT_THAT(error.text(), HasSubstr("is not an address of CUDA memory"));
  }
}

TEST_F(Import, APartMustBeWithinItsAllocation) {
  const Environment env = Import::env();
  struct Case {
    uint64_t skipped, offset, bytes, left;
  };
  for (const auto& [skipped, offset, bytes, left] : {Case{0, 0, 13, 12},
                                                     {0, 4, 9, 12},
                                                     {4, 0, 9, 8},
                                                     {4, 9, 0, 8},
                                                     {0, 1, UINT64_MAX, 12},
                                                     {0, UINT64_MAX, 2, 12}}) {
    const Error error = failure([&, s = skipped, o = offset, b = bytes] { import_of(env, in_ + s, b, o); });
    EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT) << skipped << " " << offset << " " << bytes;
    EXPECT_THAT(error.text(), HasSubstr("has " + std::to_string(left) + " bytes up to the end of its allocation"));
  }
  import_of(env, in_, kBytes);
  import_of(env, in_ + 4, kBytes - 4);
  import_of(env, in_ + 4, kBytes - 8, 4);
}

TEST_F(Import, OnnxifiUsesIt) {
  onnxBackendID ids[2] = {};
  size_t count = 2;
  ASSERT_EQ(onnxGetBackendIDs(ids, &count), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(count, 2u);
  const auto memory_types = [](onnxBackendID id) {
    onnxBitfield types = 0;
    size_t size = sizeof types;
    EXPECT_EQ(onnxGetBackendInfo(id, ONNXIFI_BACKEND_MEMORY_TYPES, &types, &size), ONNXIFI_STATUS_SUCCESS);
    return types;
  };
  if (memory_types(ids[0]) == ONNXIFI_MEMORY_TYPE_CPU) std::swap(ids[0], ids[1]);  // the first was the CPU's
  const onnxBackendID id = ids[0];
  const onnxBitfield types = memory_types(id);
  EXPECT_EQ(types, ONNXIFI_MEMORY_TYPE_CPU | ONNXIFI_MEMORY_TYPE_CUDA_BUFFER);
  onnxBackend backend = nullptr;
  onnxGraph graph = nullptr;
  const std::string model = sdk::onnx(neg_model().graph());
  ASSERT_EQ(onnxInitBackend(id, nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
  const uint64_t shape[] = {kN};
  const auto descriptor = [&](const char* name, uint64_t address, onnxEnum memory = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER) {
    return onnxTensorDescriptorV1{
        ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1, name, ONNXIFI_DATATYPE_FLOAT32, memory, 1, shape, address};
  };
  const Values host_in = {4, 5, 6};
  Values host_out = {};
  const auto a = descriptor("a", in_), c = descriptor("c", out_);
  const auto host_a = descriptor("a", reinterpret_cast<uint64_t>(&host_in), ONNXIFI_MEMORY_TYPE_CPU);
  const auto host_c = descriptor("c", reinterpret_cast<uint64_t>(&host_out), ONNXIFI_MEMORY_TYPE_CPU);
  const auto run = [&](const onnxTensorDescriptorV1& in, const onnxTensorDescriptorV1& out) {
    onnxMemoryFenceV1 after{};
    after.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
    after.type = ONNXIFI_SYNCHRONIZATION_EVENT;
    EXPECT_EQ(onnxSetIOAndRunGraph(graph, 1, &in, 1, &out, &after), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  };
  run(a, c);
  EXPECT_EQ(read(out_), (Values{-1, -2, -3}));
  run(host_a, c);
  EXPECT_EQ(read(out_), (Values{-4, -5, -6}));
  run(a, host_c);
  EXPECT_EQ(host_out, (Values{-1, -2, -3}));
  const auto status = [&](const onnxTensorDescriptorV1& in, const onnxTensorDescriptorV1& out) {
    return onnxSetGraphIO(graph, 1, &in, 1, &out);
  };
  EXPECT_EQ(status(a, descriptor("c", in_)), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);      // in the input's memory
  EXPECT_EQ(status(a, descriptor("c", in_ + 4)), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);  // in a part of it
  EXPECT_EQ(status(descriptor("a", in_ + 4), c), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);  // beyond the end
  EXPECT_EQ(status(descriptor("a", reinterpret_cast<uint64_t>(&host_in)), c), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  EXPECT_EQ(status(descriptor("a", in_, ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER), c), ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE);
  EXPECT_EQ(status(a, c), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
  for (const onnxBackendID each : ids) EXPECT_EQ(onnxReleaseBackendID(each), ONNXIFI_STATUS_SUCCESS);
}

}  // namespace
}  // namespace backplane::cuda::testing

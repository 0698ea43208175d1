// SPDX-License-Identifier: Apache-2.0
// A program with its own OpenCL context passes its buffers to libonnxifi.so.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "backplane/types.h"
#include "onnxifi/testing/structs.h"
#include "testing/onnx_writer.h"

namespace {

using namespace backplane::testing::onnx;  // NOLINT(google-build-using-namespace)
using backplane::onnxifi::descriptor;
using backplane::onnxifi::fence;

// Must be set before the library first looks for backends.
const int kOnlyThese = setenv("BACKPLANE_SELECT", "opencl,null", 1);

constexpr size_t kN = 3, kBytes = kN * sizeof(float);

// c = -a, both float[3].
std::string neg_model() {
  return model_bytes({{"", 13}}, graph({node("Neg", {"a"}, {"c"})}, {tensor_value("a", BP_DTYPE_FLOAT, {Dim(3)})},
                                       {tensor_value("c", BP_DTYPE_FLOAT, {Dim(3)})}));
}

onnxTensorDescriptorV1 descriptor(const char* name, cl_mem memory) {
  onnxTensorDescriptorV1 result = descriptor(name, static_cast<const float*>(nullptr));
  result.memoryType = ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER;
  result.buffer = reinterpret_cast<onnxPointer>(memory);
  return result;
}

class OnnxifiOpenCl : public ::testing::Test {
 protected:
  void SetUp() override {
    size_t count = 0;
    onnxGetBackendIDs(nullptr, &count);
    ids_.resize(count);
    ASSERT_EQ(onnxGetBackendIDs(ids_.data(), &count), ONNXIFI_STATUS_SUCCESS);
    for (const onnxBackendID id : ids_) {
      char name[64] = {};
      size_t size = sizeof name - 1;
      ASSERT_EQ(onnxGetBackendInfo(id, ONNXIFI_BACKEND_NAME, name, &size), ONNXIFI_STATUS_SUCCESS);
      if (std::string_view(name) == "Backplane opencl") id_ = id;
      if (std::string_view(name) == "Backplane null") null_ = id;
    }
    cl_platform_id platform = nullptr;
    if (id_ == nullptr || clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr) != CL_SUCCESS)
      GTEST_SKIP() << "there is no OpenCL device";
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, nullptr);
    queue_ = clCreateCommandQueue(context_, device_, 0, nullptr);
    ASSERT_EQ(init_backend(reinterpret_cast<uint64_t>(context_), &backend_), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxInitGraph(backend_, nullptr, model_.size(), model_.data(), 0, nullptr, &graph_),
              ONNXIFI_STATUS_SUCCESS);
  }
  void TearDown() override {
    if (graph_ != nullptr) {
      EXPECT_EQ(onnxReleaseGraph(graph_), ONNXIFI_STATUS_SUCCESS);
    }
    if (backend_ != nullptr) {
      EXPECT_EQ(onnxReleaseBackend(backend_), ONNXIFI_STATUS_SUCCESS);
    }
    for (const onnxBackendID id : ids_) EXPECT_EQ(onnxReleaseBackendID(id), ONNXIFI_STATUS_SUCCESS);
    for (const cl_mem buffer : buffers_) {
      // The library's references were released with the graph; a driver may release those of a command a little later.
      cl_uint references = 0;
      for (int i = 0; i < 1000 && references != 1; ++i) {
        if (i != 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof references, &references, nullptr);
      }
      EXPECT_EQ(references, 1u);
      clReleaseMemObject(buffer);
    }
    if (queue_ != nullptr) clReleaseCommandQueue(queue_);
    if (context_ != nullptr) clReleaseContext(context_);
  }

  onnxStatus init_backend(uint64_t context, onnxBackend* backend) const {
    const uint64_t properties[] = {ONNXIFI_BACKEND_OPENCL_CONTEXT, context, ONNXIFI_BACKEND_PROPERTY_NONE};
    return onnxInitBackend(id_, properties, backend);
  }
  cl_mem buffer(std::array<float, kN> values = {}) {
    buffers_.push_back(
        clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, kBytes, values.data(), nullptr));
    return buffers_.back();
  }
  std::array<float, kN> values_of(cl_mem buffer) const {
    std::array<float, kN> values = {};
    EXPECT_EQ(clEnqueueReadBuffer(queue_, buffer, CL_TRUE, 0, kBytes, values.data(), 0, nullptr, nullptr), CL_SUCCESS);
    return values;
  }
  onnxStatus set_io(const onnxTensorDescriptorV1& in, const onnxTensorDescriptorV1& out) const {
    return onnxSetGraphIO(graph_, 1, &in, 1, &out);
  }
  onnxEvent event(bool is_signalled) const {
    onnxEvent event = nullptr;
    EXPECT_EQ(onnxInitEvent(backend_, &event), ONNXIFI_STATUS_SUCCESS);
    if (is_signalled) {
      EXPECT_EQ(onnxSignalEvent(event), ONNXIFI_STATUS_SUCCESS);
    }
    return event;
  }
  onnxEvent start(onnxEvent input) const {
    const onnxMemoryFenceV1 before = fence(input);
    onnxMemoryFenceV1 after = fence();
    EXPECT_EQ(onnxRunGraph(graph_, &before, &after), ONNXIFI_STATUS_SUCCESS);
    return after.event;
  }
  static void end(onnxEvent event) {
    EXPECT_EQ(onnxWaitEvent(event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseEvent(event), ONNXIFI_STATUS_SUCCESS);
  }

  const std::string model_ = neg_model();
  std::vector<onnxBackendID> ids_;
  onnxBackendID id_ = nullptr, null_ = nullptr;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  onnxBackend backend_ = nullptr;
  onnxGraph graph_ = nullptr;
  std::vector<cl_mem> buffers_;
};

TEST_F(OnnxifiOpenCl, UsesTheProgramsBuffersAndHostMemory) {
  onnxBitfield types = 0;
  size_t size = sizeof types;
  ASSERT_EQ(onnxGetBackendInfo(id_, ONNXIFI_BACKEND_MEMORY_TYPES, &types, &size), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(types, ONNXIFI_MEMORY_TYPE_CPU | ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER);
  const std::array<float, kN> expected = {-1, -2, -3};
  const float in_host[kN] = {1, 2, 3};
  float out_host[kN] = {};
  const cl_mem in = buffer({1, 2, 3}), out = buffer();
  for (const onnxTensorDescriptorV1& from : {descriptor("a", in), descriptor("a", in_host)}) {
    for (const onnxTensorDescriptorV1& to : {descriptor("c", out), descriptor("c", out_host)}) {
      ASSERT_EQ(set_io(from, to), ONNXIFI_STATUS_SUCCESS);
      const onnxEvent ready = event(true);
      end(start(ready));
      EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
      if (to.memoryType == ONNXIFI_MEMORY_TYPE_CPU)
        EXPECT_THAT(out_host, ::testing::ElementsAreArray(expected));
      else
        EXPECT_EQ(values_of(out), expected);
      const std::array<float, kN> none = {};
      ASSERT_EQ(clEnqueueWriteBuffer(queue_, out, CL_TRUE, 0, kBytes, none.data(), 0, nullptr, nullptr), CL_SUCCESS);
      std::ranges::fill(out_host, 0.0F);
    }
  }
}

TEST_F(OnnxifiOpenCl, RefusesWhatItCannotUse) {
  const cl_mem in = buffer({1, 2, 3}), out = buffer();
  const cl_mem small = clCreateBuffer(context_, CL_MEM_READ_WRITE, kBytes - 1, nullptr, nullptr);
  const cl_context other_context = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, nullptr);
  const cl_mem foreign = clCreateBuffer(other_context, CL_MEM_READ_WRITE, kBytes, nullptr, nullptr);
  const onnxTensorDescriptorV1 a = descriptor("a", in), c = descriptor("c", out);
  EXPECT_EQ(set_io(descriptor("a", small), c), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  EXPECT_EQ(set_io(a, descriptor("c", small)), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  EXPECT_EQ(set_io(descriptor("a", foreign), c), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  EXPECT_EQ(set_io(a, descriptor("c", foreign)), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  EXPECT_EQ(set_io(a, descriptor("c", in)), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);  // an output in the input's memory
  EXPECT_EQ(set_io(descriptor("a", cl_mem{}), c), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  onnxTensorDescriptorV1 cuda = a;
  cuda.memoryType = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER;
  EXPECT_EQ(set_io(cuda, c), ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE);
  EXPECT_EQ(set_io(a, c), ONNXIFI_STATUS_SUCCESS);

  onnxBackend backend = nullptr;
  EXPECT_EQ(init_backend(0, &backend), ONNXIFI_STATUS_INVALID_PROPERTY);
  const uint64_t context[] = {ONNXIFI_BACKEND_OPENCL_CONTEXT, reinterpret_cast<uint64_t>(context_),
                              ONNXIFI_BACKEND_PROPERTY_NONE};
  EXPECT_EQ(onnxInitBackend(null_, context, &backend), ONNXIFI_STATUS_UNSUPPORTED_PROPERTY);
  // Without the property the device has a context of its own, which the program's buffers do not belong to.
  onnxGraph graph = nullptr;
  ASSERT_EQ(onnxInitBackend(id_, nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxInitGraph(backend, nullptr, model_.size(), model_.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxSetGraphIO(graph, 1, &a, 1, &c), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
  clReleaseMemObject(small);
  clReleaseMemObject(foreign);
  clReleaseContext(other_context);
}

// A run waits for one that is in flight only if one of them writes a buffer that the other uses.
TEST_F(OnnxifiOpenCl, RunsThatShareABufferAreOrdered) {
  const cl_mem first_in = buffer({1, 2, 3}), first_out = buffer(), in = buffer({4, 5, 6}), out = buffer();
  struct Case {
    const char* what;
    cl_mem in, out;
    bool waits;
    std::array<float, kN> result;
  };
  const Case cases[] = {
      {"it reads what the first one writes", first_out, out, true, {1, 2, 3}},
      {"both write one buffer", in, first_out, true, {-4, -5, -6}},
      {"both read one buffer", first_in, out, false, {-1, -2, -3}},
      {"it writes what the first one reads", in, first_in, true, {-4, -5, -6}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    const onnxEvent held = event(false), ready = event(true);
    ASSERT_EQ(set_io(descriptor("a", first_in), descriptor("c", first_out)), ONNXIFI_STATUS_SUCCESS);
    const onnxEvent first = start(held);
    ASSERT_EQ(set_io(descriptor("a", one.in), descriptor("c", one.out)), ONNXIFI_STATUS_SUCCESS);
    const onnxEvent second = start(ready);
    if (one.waits) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
      EXPECT_EQ(onnxGetEventState(second, &state), ONNXIFI_STATUS_SUCCESS);
      EXPECT_EQ(state, ONNXIFI_EVENT_STATE_NONSIGNALLED);
    } else {
      EXPECT_EQ(onnxWaitEvent(second), ONNXIFI_STATUS_SUCCESS);  // hangs if it waits for the first one
    }
    EXPECT_EQ(onnxSignalEvent(held), ONNXIFI_STATUS_SUCCESS);
    end(first);
    end(second);
    EXPECT_EQ(values_of(one.out), one.result);
    for (const onnxEvent each : {held, ready}) EXPECT_EQ(onnxReleaseEvent(each), ONNXIFI_STATUS_SUCCESS);
  }
}

}  // namespace

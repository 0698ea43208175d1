// SPDX-License-Identifier: Apache-2.0
// Failures of the device are reported with a status code and one line of text, and the next run or session works.
#include <gmock/gmock.h>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::HasSubstr;

class Fault : public OpenCl {
 protected:
  static Exec bound(const Environment& env) {
    Exec exec = env.compile(small_model(), only_opencl()).exec();
    exec.bind("x", small_input(3, 1));
    return exec;
  }
};

TEST_F(Fault, AKernelThatDoesNotCompileComesWithItsLog) {
  const CacheFolder folder;  // without cached kernels
  const Environment env = opencl();
  const Model model = small_model();
  cl_layer().prepend_to_sources("#error these words come from the compiler\n");
  const Error error = failure([&] { bound(env).run(); });
  EXPECT_EQ(error.status(), BP_INTERNAL);
  EXPECT_THAT(error.text(), HasSubstr("a kernel does not compile with '"));
  EXPECT_THAT(error.text(), HasSubstr("these words come from the compiler"));
  cl_layer().clear_failures();
  bound(env).run();
}

TEST_F(Fault, OutOfMemoryIsReportedAsExhausted) {
  const Environment env = opencl();
  for (const cl_int status : {CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES}) {
    cl_layer().fail("clCreateBuffer", status);
    const Error error = failure([&] { bound(env).run(); });
    EXPECT_EQ(error.status(), BP_RESOURCE_EXHAUSTED);
    EXPECT_THAT(error.text(), HasSubstr("bytes"));
    cl_layer().clear_failures();
  }
  bound(env).run();
}

// Makes each function fail from its first call on, then from its second, and so on until no call fails. Nothing may
// crash or leak, and the error code must be right.
TEST_F(Fault, EveryAllocationMayFail) {
  const Environment env = opencl();
  bound(env).run();
  const ClLayer::References before = cl_layer().references();
  for (const char* function : {"clCreateBuffer", "clCreateSubBuffer", "clCreateCommandQueue", "clCreateKernel",
                               "clEnqueueMapBuffer", "clEnqueueNDRangeKernel", "clEnqueueWriteBuffer",
                               "clEnqueueMarkerWithWaitList", "clFlush", "clSetEventCallback"}) {
    SCOPED_TRACE(function);
    const uint64_t refused_before = cl_layer().refused;
    uint64_t good = 0;
    bool refused = true;
    while (refused) {
      ASSERT_LT(good, 100u);
      const uint64_t refused_so_far = cl_layer().refused;
      cl_layer().fail(function, CL_OUT_OF_RESOURCES, good++);
      const Error error = failure([&] { bound(env).run(); });
      cl_layer().clear_failures();
      refused = cl_layer().refused != refused_so_far;
      // A run succeeds if its work is complete before the flush fails.
      const bool may_be_well = !refused || function == std::string("clFlush");
      if (error.status() != BP_OK || !may_be_well) {
        EXPECT_EQ(error.status(), BP_RESOURCE_EXHAUSTED) << error.text();
      }
      EXPECT_TRUE(refused || error.status() == BP_OK) << error.text();
      EXPECT_EQ(cl_layer().references(), before);
    }
    EXPECT_GT(cl_layer().refused, refused_before) << "it was never called";
  }
}

// The device is lost when a run begins, or when its completion is reported.
TEST_F(Fault, ALostDeviceIsReportedAsLost) {
  const Environment env = opencl();
  for (const char* where : {"clEnqueueNDRangeKernel", "clEnqueueMarkerWithWaitList", "the end"}) {
    SCOPED_TRACE(where);
    Exec exec = bound(env);
    exec.run();
    cl_layer().fail(where, CL_DEVICE_NOT_AVAILABLE);
    EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_DEVICE_LOST);
    cl_layer().clear_failures();
  }
}

TEST_F(Fault, ARunAfterAFailedOneIsRight) {
  const Environment env = opencl();
  Exec exec = bound(env);
  exec.run();
  const std::vector<float> right = exec.output(0u).values<float>();
  for (const char* where : {"clEnqueueNDRangeKernel", "clEnqueueMarkerWithWaitList", "the end"}) {
    SCOPED_TRACE(where);
    cl_layer().fail(where, CL_OUT_OF_RESOURCES);
    EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_RESOURCE_EXHAUSTED);
    cl_layer().clear_failures();
    exec.run();
    EXPECT_EQ(exec.output(0u).values<float>(), right);
  }
}

TEST_F(Fault, ExtentsAreRetriedAfterAnAllocationFailed) {
  const Environment env = opencl();
  Exec exec = bound(env), other = bound(env);
  exec.run();
  for (Exec* each : {&exec, &other}) each->bind("x", small_input(70, 2));
  cl_layer().fail("clCreateSubBuffer", CL_OUT_OF_RESOURCES);
  EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_RESOURCE_EXHAUSTED);
  cl_layer().clear_failures();
  exec.run();
  other.run();
  EXPECT_EQ(exec.output(0u).values<float>(), other.output(0u).values<float>());
}

TEST_F(Fault, AnIndexBeyondItsExtentNamesTheNode) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {4});
  const uint32_t i = graph.input("i", BP_DTYPE_INT64, {2});
  const Environment env = opencl();
  Exec exec = env.compile(graph.finish({graph.node("Gather", "chosen", {x, i}, {{"axis", 0}})}), only_opencl()).exec();
  exec.bind("x", Tensor::of<float>({4}, {1, 2, 3, 4}));
  exec.bind("i", Tensor::of<int64_t>({2}, {1, 4}));
  const Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.text(), HasSubstr("'chosen': an index is out of range"));
  exec.bind("i", Tensor::of<int64_t>({2}, {-1, 0}));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ::testing::ElementsAre(4, 1));
}

}  // namespace
}  // namespace backplane::opencl::testing

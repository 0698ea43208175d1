// SPDX-License-Identifier: Apache-2.0
// Memory between devices and with the framework: shared without a copy, or copied where a device has its own.
#include <gmock/gmock.h>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kElements = 1000;

bp_device_info_t device_of(const Environment& env) {
  for (const Device& device : env.devices()) {
    if (device.name.starts_with("opencl")) return device.info;
  }
  return {};
}

bp_space_t space_of(const Environment& env, uint32_t index) {
  bp_space_t space{};
  detail::call(api().memory_space, env.get(), device_of(env).index, index, &space, static_cast<uint32_t>(sizeof space));
  return space;
}

// The space of cl_mem: the last.
uint32_t own_space(const Environment& env) {
  return device_of(env).space_count - 1;
}

bp_buffer_t host_buffer(std::vector<float>& memory) {
  return {0, 0, nullptr, memory.data(), 0, memory.size() * sizeof(float)};
}

void copy(const Environment& env, const bp_buffer_t& from, const bp_buffer_t& to) {
  detail::call(api().memory_copy, env.get(), &from, &to, to.bytes);
}

// A buffer of the device, released at the end.
class DeviceBuffer {
 public:
  DeviceBuffer(const Environment& env, uint64_t bytes) : env_(env) {
    detail::call(api().memory_allocate, env.get(), device_of(env).index, own_space(env), bytes, &buffer);
  }
  DeviceBuffer(const Environment& env, const bp_external_t& external) : env_(env) {
    detail::call(api().memory_import, env.get(), device_of(env).index, own_space(env), &external, &buffer);
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { api().memory_release(env_.get(), &buffer); }
  bp_buffer_t buffer{};

 private:
  const Environment& env_;
};

// y = -|-x| over kElements floats, so that the device of each node can be chosen.
Model chain_of_three(int64_t n) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {n});
  const uint32_t a = graph.node("Neg", "a", {x});
  const uint32_t b = graph.node("Abs", "b", {a});
  return graph.finish({graph.node("Neg", "y", {b})});
}

SessionOptions pinned(std::map<std::string, std::string> pins) {
  SessionOptions how;
  how.pins = std::move(pins);
  how.options["loader.costs"] = "told";
  return how;
}

// Binds kElements floats.
void bind(const Exec& exec, uint32_t slot, const bp_buffer_t& buffer) {
  const bp_tensor_t tensor{sizeof tensor, BP_DTYPE_FLOAT, 1, BP_LAYOUT_DENSE, &kElements, nullptr, buffer};
  detail::call(api().exec_bind, exec.get(), slot, &tensor);
}

class MemoryTest : public OpenCl {
 protected:
  // The runs of `session` after the first, as the timeline shows them.
  static std::string trace_of(const Environment& env, Exec& exec) {
    env.start_trace();
    exec.run();
    return env.stop_trace();
  }
  static bool unified(const Environment& env) { return (device_of(env).flags & BP_DEVICE_UNIFIED_MEMORY) != 0; }
};

TEST_F(MemoryTest, AMixedPlacementSharesHostMemoryWithoutCopies) {
  const Environment env = opencl();
  if (!unified(env)) GTEST_SKIP() << "this device has memory of its own";
  for (const auto& [middle, ends] : {std::pair{"opencl", "cpu"}, {"cpu", "opencl"}}) {
    Exec exec = env.compile(chain_of_three(kElements), pinned({{"a", ends}, {"b", middle}, {"y", ends}})).exec();
    exec.bind("x", Tensor::of<float>({kElements}, std::vector<float>(kElements, -3)));
    exec.run();
    const uint64_t copies = cl_layer().copies, launches = cl_layer().launches;
    const std::string trace = trace_of(env, exec);
    EXPECT_EQ(cl_layer().copies, copies);
    EXPECT_GT(cl_layer().launches, launches);
    for (const Device& device : env.devices())
      EXPECT_THAT(trace, HasSubstr("\"cat\":\"compute\",\"pid\":" + std::to_string(device.index))) << device.name;
    EXPECT_THAT(trace, Not(HasSubstr("\"cat\":\"copy\"")));
    EXPECT_EQ(exec.output(0u).values<float>(), std::vector<float>(kElements, -3));
  }
}

TEST_F(MemoryTest, ADeviceWithMemoryOfItsOwnIsCopiedToAndFrom) {
  const Environment env = opencl({{"opencl.memory", "own"}});
  EXPECT_FALSE(unified(env));
  EXPECT_EQ(device_of(env).space_count, 1u);
  EXPECT_EQ(space_of(env, 0).flags & BP_SPACE_HOST, 0u);
  for (const bool all : {true, false}) {
    const char* ends = all ? "opencl" : "cpu";
    Exec exec = env.compile(chain_of_three(kElements), pinned({{"a", ends}, {"b", "opencl"}, {"y", ends}})).exec();
    exec.bind("x", Tensor::of<float>({kElements}, std::vector<float>(kElements, 5)));
    exec.run();
    const uint64_t copies = cl_layer().copies, bytes = cl_layer().copied_bytes, imports = cl_layer().imports;
    const std::string trace = trace_of(env, exec);
    EXPECT_EQ(cl_layer().copies - copies, 2u);
    EXPECT_EQ(cl_layer().copied_bytes - bytes, 2 * kElements * sizeof(float));
    EXPECT_EQ(cl_layer().imports, imports);
    EXPECT_THAT(trace, HasSubstr("\"cat\":\"copy\""));
    EXPECT_EQ(exec.output(0u).values<float>(), std::vector<float>(kElements, -5));
  }
}

TEST_F(MemoryTest, BothWaysOfMemoryGiveTheSameBits) {
  std::vector<std::vector<float>> results;
  for (const char* memory : {"shared", "own"}) {
    const Environment env = opencl({{"opencl.memory", memory}});
    Exec exec = env.compile(small_model(), only_opencl()).exec();
    for (const int64_t rows : {5, 2, 9}) {
      exec.bind("x", small_input(rows, 4));
      exec.run();
      results.push_back(exec.output(0u).values<float>());
    }
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i], results[i + 3]);
}

TEST_F(MemoryTest, AnUnknownWayOfMemoryIsRefusedWithThoseThatThereAre) {
  const Environment env = opencl({{"opencl.memory", "borrowed"}});
  for (const bp_candidate_t& candidate : env.candidates()) {
    if (view::text(candidate.id) != "opencl") continue;
    EXPECT_NE(candidate.refusal, BP_REFUSED_NONE);
    EXPECT_THAT(std::string(view::text(candidate.text)),
                HasSubstr("option memory is \"borrowed\": it must be shared (the default) or own"));
  }
}

// The framework's own cl_mem become input and output, and nothing is copied, whether the device shares the host's
// memory or not.
TEST_F(MemoryTest, AClMemOfTheFrameworkIsBoundWithoutCopies) {
  for (const char* memory : {"shared", "own"}) {
    SCOPED_TRACE(memory);
    const Environment env = opencl({{"opencl.memory", memory}});
    const uint32_t space = own_space(env);
    EXPECT_EQ(space_of(env, space).imports, 1u << BP_EXTERNAL_CL_MEM);
    // A context is the device's own: a buffer of it tells which.
    const DeviceBuffer any(env, 16);
    bp_external_t told{sizeof told, BP_EXTERNAL_CL_MEM, 0, 0, 0};
    detail::call(api().memory_export, env.get(), &any.buffer, &told);
    EXPECT_EQ(told.bytes, 16u);
    cl_context context = nullptr;
    ASSERT_EQ(
        clGetMemObjectInfo(reinterpret_cast<cl_mem>(told.handle), CL_MEM_CONTEXT, sizeof context, &context, nullptr),
        CL_SUCCESS);
    const uint64_t head = space_of(env, space).alignment, bytes = kElements * sizeof(float);
    cl_int status = CL_SUCCESS;
    const cl_mem framework = clCreateBuffer(context, CL_MEM_READ_WRITE, head + bytes, nullptr, &status);
    ASSERT_EQ(status, CL_SUCCESS);
    const cl_mem y = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &status);
    ASSERT_EQ(status, CL_SUCCESS);
    {
      // x begins in the middle of the framework's buffer.
      const bp_external_t x_is{sizeof x_is, BP_EXTERNAL_CL_MEM, reinterpret_cast<uint64_t>(framework), bytes, head};
      const bp_external_t y_is{sizeof y_is, BP_EXTERNAL_CL_MEM, reinterpret_cast<uint64_t>(y), bytes, 0};
      const DeviceBuffer x_buffer(env, x_is), y_buffer(env, y_is);
      std::vector<float> values(kElements, 7), back(kElements);
      copy(env, host_buffer(values), x_buffer.buffer);
      Exec exec = env.compile(chain_of_three(kElements), only_opencl()).exec();
      bind(exec, 0, x_buffer.buffer);
      bind(exec, BP_SLOT_OUTPUT, y_buffer.buffer);
      const uint64_t copies = cl_layer().copies;
      exec.run();
      EXPECT_EQ(cl_layer().copies, copies);
      copy(env, y_buffer.buffer, host_buffer(back));
      EXPECT_EQ(back, std::vector<float>(kElements, -7));
    }
    // An import ends without the framework's reference.
    cl_uint references = 0;
    clGetMemObjectInfo(framework, CL_MEM_REFERENCE_COUNT, sizeof references, &references, nullptr);
    EXPECT_EQ(references, 1u);
    clReleaseMemObject(framework);
    clReleaseMemObject(y);
  }
}

// Between islands of OpenCL and of the CPU backend: what the framework bound is copied for those that cannot take it.
TEST_F(MemoryTest, AClMemOfTheFrameworkReachesEveryIsland) {
  const Environment env = opencl();
  if (!unified(env)) GTEST_SKIP() << "this device has memory of its own";
  const uint64_t bytes = kElements * sizeof(float);
  for (const auto& [middle, ends, expected_copies] : {std::tuple{"opencl", "cpu", 2u}, {"cpu", "opencl", 0u}}) {
    SCOPED_TRACE(ends);
    const DeviceBuffer x(env, bytes), y(env, bytes);
    std::vector<float> values(kElements, 7), back(kElements);
    copy(env, host_buffer(values), x.buffer);
    Exec exec = env.compile(chain_of_three(kElements), pinned({{"a", ends}, {"b", middle}, {"y", ends}})).exec();
    bind(exec, 0, x.buffer);
    bind(exec, BP_SLOT_OUTPUT, y.buffer);
    const uint64_t copies = cl_layer().copies;
    exec.run();
    EXPECT_EQ(cl_layer().copies - copies, expected_copies);
    copy(env, y.buffer, host_buffer(back));
    EXPECT_EQ(back, std::vector<float>(kElements, -7));
    // Host memory in its place, and back again.
    exec.bind("x", Tensor::of<float>({kElements}, std::vector<float>(kElements, 8)));
    exec.run();
    copy(env, y.buffer, host_buffer(back));
    EXPECT_EQ(back, std::vector<float>(kElements, -8));
    bind(exec, 0, x.buffer);
    exec.run();
    copy(env, y.buffer, host_buffer(back));
    EXPECT_EQ(back, std::vector<float>(kElements, -7));
  }
}

TEST_F(MemoryTest, WhatCannotBeImportedOrExportedIsNamed) {
  const Environment env = opencl();
  bp_external_t external{sizeof external, BP_EXTERNAL_DMA_BUF, 0, 16, 0};
  bp_buffer_t out{};
  const uint32_t device = device_of(env).index, space = own_space(env);
  const bp_external_t& as_it_is = external;
  Error error = failure([&] { detail::call(api().memory_import, env.get(), device, space, &as_it_is, &out); });
  EXPECT_EQ(error.status(), BP_UNSUPPORTED);
  external.kind = BP_EXTERNAL_CL_MEM;  // of the handle 0
  error = failure([&] { detail::call(api().memory_import, env.get(), device, space, &as_it_is, &out); });
  EXPECT_NE(error.status(), BP_OK);
  const DeviceBuffer buffer(env, 16);
  external.kind = BP_EXTERNAL_HOST_POINTER;
  error = failure([&] { detail::call(api().memory_export, env.get(), &buffer.buffer, &external); });
  EXPECT_EQ(error.status(), BP_UNSUPPORTED);
  EXPECT_THAT(error.text(), HasSubstr("space 'device' is exported as a cl_mem"));
}

}  // namespace
}  // namespace backplane::opencl::testing

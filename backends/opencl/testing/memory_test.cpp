// SPDX-License-Identifier: Apache-2.0
// Memory that devices and the framework exchange: shared without a copy, or copied if the device has separate memory.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "backplane/ext/draft/kinds.h"
#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kFloats = 1000;

bp_device_info_t device_of(const Environment& env) {
  for (const Device& device : env.devices()) {
    if (device.name.starts_with("opencl")) return device.info;
  }
  return {};
}

bp_space_t space_of(const Environment& env, uint32_t index) {
  bp_space_t space{};
  space.size = sizeof space;
  detail::call(api().memory_space, env.get(), device_of(env).id, index, &space);
  return space;
}

// The index of the last space, which is the device's own memory.
uint32_t own_space(const Environment& env) {
  return device_of(env).space_count - 1;
}

bp_buffer_t host_buffer(std::vector<float>& memory) {
  return {0, 0, 0, nullptr, memory.data(), 0, memory.size() * sizeof(float)};
}

void copy(const Environment& env, const bp_buffer_t& from, const bp_buffer_t& to) {
  env.copy(from, to, to.bytes);
}

Buffer device_buffer(const Environment& env, uint64_t bytes) {
  return env.allocate(device_of(env).id, bytes, own_space(env));
}

Buffer import_of(const Environment& env, const bp_external_t& external) {
  return env.import_memory(device_of(env).id, external, own_space(env));
}

// y = -|-x| over n floats, as three nodes, so that tests can choose a device for each.
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
  how.options["loader.costs"] = "reported";
  return how;
}

void bind(const Exec& exec, uint32_t slot, const bp_buffer_t& buffer) {
  const bp_tensor_t tensor{sizeof tensor, BP_DTYPE_FLOAT, 1, BP_LAYOUT_DENSE, &kFloats, nullptr, buffer};
  detail::call(api().exec_bind, exec.get(), slot, &tensor);
}

// Fills `x`, runs the model from `x` to `y`, which are in memory of the device, and checks the result.
void expect_run(const Environment& env, const Buffer& x, const Buffer& y) {
  std::vector<float> values(kFloats, 7), back(kFloats);
  copy(env, host_buffer(values), x.abi());
  Exec exec = env.compile(chain_of_three(kFloats), only_opencl()).exec();
  bind(exec, 0, x.abi());
  bind(exec, BP_SLOT_OUTPUT, y.abi());
  exec.run();
  copy(env, y.abi(), host_buffer(back));
  EXPECT_EQ(back, std::vector<float>(kFloats, -7));
}

class MemoryTest : public OpenCl {
 protected:
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
    Exec exec = env.compile(chain_of_three(kFloats), pinned({{"a", ends}, {"b", middle}, {"y", ends}})).exec();
    exec.bind("x", Tensor::of<float>({kFloats}, std::vector<float>(kFloats, -3)));
    exec.run();
    const uint64_t copies = cl_layer().copies, launches = cl_layer().launches;
    const std::string trace = trace_of(env, exec);
    EXPECT_EQ(cl_layer().copies, copies);
    EXPECT_GT(cl_layer().launches, launches);
    for (const Device& device : env.devices())
      EXPECT_THAT(trace, HasSubstr("\"cat\":\"compute\",\"pid\":" + std::to_string(device.index))) << device.name;
    EXPECT_THAT(trace, Not(HasSubstr("\"cat\":\"copy\"")));
    EXPECT_EQ(exec.output(0u).values<float>(), std::vector<float>(kFloats, -3));
  }
}

TEST_F(MemoryTest, MemoryIsCopiedForADeviceWithItsOwn) {
  const Environment env = opencl({{"opencl.memory", "own"}});
  EXPECT_FALSE(unified(env));
  EXPECT_EQ(device_of(env).space_count, 1u);
  EXPECT_EQ(space_of(env, 0).flags & BP_SPACE_HOST, 0u);
  for (const bool all : {true, false}) {
    const char* ends = all ? "opencl" : "cpu";
    Exec exec = env.compile(chain_of_three(kFloats), pinned({{"a", ends}, {"b", "opencl"}, {"y", ends}})).exec();
    exec.bind("x", Tensor::of<float>({kFloats}, std::vector<float>(kFloats, 5)));
    exec.run();
    const uint64_t copies = cl_layer().copies, bytes = cl_layer().copied_bytes, imports = cl_layer().imports;
    const std::string trace = trace_of(env, exec);
    EXPECT_EQ(cl_layer().copies - copies, 2u);
    EXPECT_EQ(cl_layer().copied_bytes - bytes, 2 * kFloats * sizeof(float));
    EXPECT_EQ(cl_layer().imports, imports);
    EXPECT_THAT(trace, HasSubstr("\"cat\":\"copy\""));
    EXPECT_EQ(exec.output(0u).values<float>(), std::vector<float>(kFloats, -5));
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

TEST_F(MemoryTest, AnUnknownMemoryOptionIsRefusedWithTheValidOnes) {
  const Environment env = opencl({{"opencl.memory", "borrowed"}});
  for (const bp_candidate_t& candidate : env.candidates()) {
    if (view::text(candidate.id) != "opencl") continue;
    EXPECT_NE(candidate.refusal, BP_REFUSED_NONE);
    EXPECT_THAT(std::string(view::text(candidate.text)),
                HasSubstr("option memory is \"borrowed\": it must be shared (the default) or own"));
  }
}

// Buffers that claim more bytes than their memory has are errors of the caller, not failures of the device.
TEST_F(MemoryTest, ABufferBeyondItsMemoryIsRefused) {
  const Environment env = opencl();
  constexpr uint64_t kBytes = kFloats * sizeof(float);
  const Buffer there = device_buffer(env, kBytes);
  bp_buffer_t beyond = there.abi();
  beyond.offset = kBytes / 2;
  std::vector<float> memory(kFloats);
  EXPECT_EQ(failure([&] { copy(env, host_buffer(memory), beyond); }).status(), BP_INVALID_ARGUMENT);
  Exec exec = env.compile(chain_of_three(kFloats)).exec();
  bind(exec, 0, beyond);
  const Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT) << error.text();
  const bp_external_t nothing{sizeof nothing, BP_EXTERNAL_CL_MEM, 0, 64, 0};
  EXPECT_EQ(failure([&] { import_of(env, nothing); }).status(), BP_INVALID_ARGUMENT);
}

// Owns a cl_mem, in the context of the device or in another one. `part` describes a range of its bytes for an import.
struct OwnedMem {
  OwnedMem(cl_context context, size_t bytes, cl_mem_flags flags = CL_MEM_READ_WRITE)
      : memory(clCreateBuffer(context, flags, bytes, nullptr, nullptr)) {}
  ~OwnedMem() { clReleaseMemObject(memory); }
  OwnedMem(const OwnedMem&) = delete;
  bp_external_t part(uint64_t offset, uint64_t bytes) const {
    return {sizeof(bp_external_t), BP_EXTERNAL_CL_MEM, reinterpret_cast<uint64_t>(memory), bytes, offset};
  }
  cl_uint references() const {
    cl_uint count = 0;
    clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof count, &count, nullptr);
    return count;
  }
  // Whether nothing but this object holds the memory. A driver may release what a command used a little after the
  // command has ended.
  bool is_released() const {
    for (int i = 0; i < 1000 && references() != 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return references() == 1;
  }
  cl_mem memory;
};

cl_context context_of(const Environment& env) {
  const Buffer any = device_buffer(env, 16);
  const auto memory = reinterpret_cast<cl_mem>(env.export_memory(any, BP_EXTERNAL_CL_MEM).handle);
  cl_context context = nullptr;
  clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, nullptr);
  return context;
}

// The framework's own cl_mem objects are bound as input and output. Nothing is copied, even if the device does not
// share host memory.
TEST_F(MemoryTest, AClMemOfTheFrameworkIsBoundWithoutCopies) {
  for (const char* memory : {"shared", "own"}) {
    SCOPED_TRACE(memory);
    const Environment env = opencl({{"opencl.memory", memory}});
    const uint32_t space = own_space(env);
    ASSERT_EQ(space_of(env, space).import_count, 1u);
    EXPECT_EQ(space_of(env, space).imports[0], BP_EXTERNAL_CL_MEM);
    EXPECT_EQ(env.export_memory(device_buffer(env, 16), BP_EXTERNAL_CL_MEM).bytes, 16u);
    const uint64_t head = space_of(env, space).alignment, bytes = kFloats * sizeof(float);
    const cl_context context = context_of(env);
    const OwnedMem framework(context, head + bytes), y(context, bytes);
    int released = 0;
    {
      // x begins inside the framework's buffer.
      bp_external_t x_is = framework.part(head, bytes);
      x_is.self = &released;
      x_is.release = [](void* self) { ++*static_cast<int*>(self); };
      const Buffer x_buffer = import_of(env, x_is), y_buffer = import_of(env, y.part(0, bytes));
      std::vector<float> values(kFloats, 7), back(kFloats);
      copy(env, host_buffer(values), x_buffer.abi());
      Exec exec = env.compile(chain_of_three(kFloats), only_opencl()).exec();
      bind(exec, 0, x_buffer.abi());
      bind(exec, BP_SLOT_OUTPUT, y_buffer.abi());
      const uint64_t copies = cl_layer().copies;
      exec.run();
      EXPECT_EQ(cl_layer().copies, copies);
      copy(env, y_buffer.abi(), host_buffer(back));
      EXPECT_EQ(back, std::vector<float>(kFloats, -7));
    }
    EXPECT_EQ(released, 1);
    // Releasing an import leaves the framework's own reference.
    EXPECT_TRUE(framework.is_released()) << framework.references();
  }
}

// With islands of OpenCL and of the CPU backend, a bound cl_mem is copied for islands that cannot use it.
TEST_F(MemoryTest, AClMemOfTheFrameworkReachesEveryIsland) {
  const Environment env = opencl();
  if (!unified(env)) GTEST_SKIP() << "this device has memory of its own";
  const uint64_t bytes = kFloats * sizeof(float);
  for (const auto& [middle, ends, expected_copies] : {std::tuple{"opencl", "cpu", 2u}, {"cpu", "opencl", 0u}}) {
    SCOPED_TRACE(ends);
    const Buffer x = device_buffer(env, bytes), y = device_buffer(env, bytes);
    std::vector<float> values(kFloats, 7), back(kFloats);
    copy(env, host_buffer(values), x.abi());
    Exec exec = env.compile(chain_of_three(kFloats), pinned({{"a", ends}, {"b", middle}, {"y", ends}})).exec();
    bind(exec, 0, x.abi());
    bind(exec, BP_SLOT_OUTPUT, y.abi());
    const uint64_t copies = cl_layer().copies;
    exec.run();
    EXPECT_EQ(cl_layer().copies - copies, expected_copies);
    copy(env, y.abi(), host_buffer(back));
    EXPECT_EQ(back, std::vector<float>(kFloats, -7));
    // Binds host memory instead, then the cl_mem again.
    exec.bind("x", Tensor::of<float>({kFloats}, std::vector<float>(kFloats, 8)));
    exec.run();
    copy(env, y.abi(), host_buffer(back));
    EXPECT_EQ(back, std::vector<float>(kFloats, -8));
    bind(exec, 0, x.abi());
    exec.run();
    copy(env, y.abi(), host_buffer(back));
    EXPECT_EQ(back, std::vector<float>(kFloats, -7));
  }
}

TEST_F(MemoryTest, AClMemMustBeAsLargeAsStated) {
  const Environment env = opencl();
  const uint64_t head = space_of(env, own_space(env)).alignment;
  const OwnedMem owned(context_of(env), head + 64);
  for (const auto& [offset, bytes] :
       {std::pair<uint64_t, uint64_t>{0, head + 65}, {head, 65}, {2 * (head + 64), 0}, {head, UINT64_MAX - 1}}) {
    const Error error = failure([&, o = offset, b = bytes] { import_of(env, owned.part(o, b)); });
    EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT) << offset << " " << bytes;
    EXPECT_THAT(error.text(), HasSubstr("the cl_mem has " + std::to_string(head + 64) + " bytes"));
  }
  EXPECT_EQ(owned.references(), 1u);
  import_of(env, owned.part(head, 64));
}

// The backend checks the access flags of a cl_mem, because OpenCL drivers need not do so.
TEST_F(MemoryTest, AClMemIsUsedAsItsFlagsAllow) {
  const Environment env = opencl();
  constexpr uint64_t kBytes = kFloats * sizeof(float);
  const uint64_t head = space_of(env, own_space(env)).alignment;
  const OwnedMem read(context_of(env), head + kBytes, CL_MEM_READ_ONLY),
      write(context_of(env), head + kBytes, CL_MEM_WRITE_ONLY);
  for (const uint64_t offset : {uint64_t{0}, head}) {
    const Buffer x = import_of(env, read.part(offset, kBytes)), y = import_of(env, write.part(offset, kBytes));
    expect_run(env, x, y);
    for (const bool is_input : {true, false}) {
      const Error error = failure([&] {
        const Buffer both = device_buffer(env, kBytes);
        Exec other = env.compile(chain_of_three(kFloats), only_opencl()).exec();
        bind(other, 0, (is_input ? y : both).abi());
        bind(other, BP_SLOT_OUTPUT, (is_input ? both : x).abi());
        other.run();
      });
      EXPECT_EQ(error.status(), BP_UNSUPPORTED);
      EXPECT_THAT(error.text(), HasSubstr(is_input ? "kernels may only write to the memory of input 0"
                                                   : "kernels may only read the memory of output 0"));
    }
  }
}

TEST_F(MemoryTest, AClMemMayBeASubBuffer) {
  const Environment env = opencl();
  constexpr uint64_t kBytes = kFloats * sizeof(float);
  const uint64_t head = space_of(env, own_space(env)).alignment;
  const OwnedMem whole(context_of(env), 2 * head + kBytes);
  const cl_buffer_region region{head, head + kBytes};
  const cl_mem part = clCreateSubBuffer(whole.memory, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, nullptr);
  ASSERT_NE(part, nullptr);
  {
    const Buffer x =
        import_of(env, {sizeof(bp_external_t), BP_EXTERNAL_CL_MEM, reinterpret_cast<uint64_t>(part), kBytes, head});
    const Buffer y = device_buffer(env, kBytes);
    expect_run(env, x, y);
  }
  clReleaseMemObject(part);
  EXPECT_TRUE(whole.is_released()) << whole.references();
}

TEST_F(MemoryTest, AClMemMustBeABuffer) {
  const Environment env = opencl();
  const cl_image_format format{CL_RGBA, CL_FLOAT};
  cl_image_desc what{};
  what.image_type = CL_MEM_OBJECT_IMAGE2D;
  what.image_width = what.image_height = 4;
  const cl_mem image = clCreateImage(context_of(env), CL_MEM_READ_WRITE, &format, &what, nullptr, nullptr);
  if (image == nullptr) GTEST_SKIP() << "this device has no images";
  const Error error = failure([&] {
    import_of(env, {sizeof(bp_external_t), BP_EXTERNAL_CL_MEM, reinterpret_cast<uint64_t>(image), 64, 0});
  });
  EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.text(), HasSubstr("the cl_mem is not a buffer"));
  clReleaseMemObject(image);
}

TEST_F(MemoryTest, AClMemOfAnotherContextIsRefused) {
  const Environment env = opencl();
  const cl_context own = context_of(env);
  cl_device_id device = nullptr;
  ASSERT_EQ(clGetContextInfo(own, CL_CONTEXT_DEVICES, sizeof device, &device, nullptr), CL_SUCCESS);
  const cl_context other = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  ASSERT_NE(other, nullptr);
  {
    const OwnedMem owned(other, 64);
    const Error error = failure([&] { import_of(env, owned.part(0, 64)); });
    EXPECT_EQ(error.status(), BP_UNSUPPORTED);
    EXPECT_THAT(error.text(), HasSubstr("the cl_mem is of another context"));
    EXPECT_EQ(owned.references(), 1u);
  }
  clReleaseContext(other);
}

// An exported cl_mem is borrowed (bp_memory_export): a host without OpenCL could not release it.
TEST_F(MemoryTest, AnExportedClMemBelongsToItsBuffer) {
  const Environment env = opencl();
  const auto references = [](cl_mem memory) {
    cl_uint count = 0;
    EXPECT_EQ(clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof count, &count, nullptr), CL_SUCCESS);
    return count;
  };
  auto buffer = std::make_unique<Buffer>(device_buffer(env, 16));
  const auto memory = reinterpret_cast<cl_mem>(env.export_memory(*buffer, BP_EXTERNAL_CL_MEM).handle);
  const cl_uint before = references(memory);
  env.export_memory(*buffer, BP_EXTERNAL_CL_MEM);
  EXPECT_EQ(references(memory), before);
  clRetainMemObject(memory);  // keeps it beyond the buffer
  buffer.reset();
  EXPECT_EQ(references(memory), before);
  clReleaseMemObject(memory);
}

TEST_F(MemoryTest, ErrorsNameWhatCannotBeImportedOrExported) {
  const Environment env = opencl();
  bp_external_t external{sizeof external, BP_DRAFT_EXTERNAL_DMA_BUF, 0, 16, 0};
  Error error = failure([&] { import_of(env, external); });
  EXPECT_EQ(error.status(), BP_UNSUPPORTED);
  external.kind = BP_EXTERNAL_CL_MEM;  // with the handle 0
  error = failure([&] { import_of(env, external); });
  EXPECT_NE(error.status(), BP_OK);
  const Buffer buffer = device_buffer(env, 16);
  error = failure([&] { env.export_memory(buffer, BP_EXTERNAL_HOST_POINTER); });
  EXPECT_EQ(error.status(), BP_UNSUPPORTED);
  EXPECT_THAT(error.text(), HasSubstr("space 'device' is exported as a cl_mem"));
}

}  // namespace
}  // namespace backplane::opencl::testing

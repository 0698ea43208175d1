// SPDX-License-Identifier: Apache-2.0
// Invalid copies, fills, mappings, imports and bindings are refused. Valid copies, fills and mappings succeed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/partial.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kUnknown = 0x80000000u;

// Copies three floats between host memory and a device's memory, or between host buffers.
class MemoryCalls : public ::testing::Test {
 protected:
  MemoryCalls() {
    device = env.devices()[1].info.id;
    const bp_allocate_t what{sizeof what, 0, 12, nullptr, nullptr};
    detail::call(api().memory_allocate, env.get(), device, &what, &own);
    from.address = values;
    to.address = others;
    from.bytes = to.bytes = 12;
    const bp_semaphore_create_t how{sizeof how, 0, 0, nullptr, nullptr};
    detail::call(api().native_semaphore_create, env.get(), device, &how, &native);
    run.size = sizeof run;
    run.stream = stream.get();
    point = ended.at(1);
  }
  ~MemoryCalls() override {
    api().native_semaphore_destroy(native);
    const bp_release_t what{sizeof what, 0, &own, nullptr};
    api().memory_release(env.get(), &what);
  }
  // Copies from host memory to the device's memory, with `run`.
  bp_status_t copy() { return copy(from, own, &run); }
  bp_status_t copy(const bp_buffer_t& source, const bp_buffer_t& target, const bp_run_t* order = nullptr,
                   uint32_t flags = 0) {
    const bp_copy_t what{sizeof what, flags, &source, &target, 12, order};
    return status([&] { detail::call(api().memory_copy, env.get(), &what); });
  }
  template <class Call>
  bp_status_t status(const Call& call) {
    const Error error = failure(call);
    text = error.text();
    return error.status();
  }

  const Environment env = streaming({{"partial.marks", "1"}});
  uint64_t device = 0;
  float values[3] = {1, 2, 3}, others[3] = {};
  bp_buffer_t from{}, to{}, own{};
  const Stream stream{env.get(), env.devices()[1].info.id};
  const Semaphore ended;
  bp_native_semaphore_t* native = nullptr;
  bp_run_t run{};
  bp_point_t point{};
  std::string text;
};

TEST_F(MemoryCalls, TakeWhatTheHeadersAllow) {
  run.signals = &point;
  run.signal_count = 1;
  EXPECT_EQ(copy(), BP_OK) << text;
  ended.wait(1);
  const bp_point_t reached = bp_native_point(native, device, 0);
  run.waits = &reached;
  run.wait_count = 1;
  EXPECT_EQ(copy(own, to, &run), BP_OK) << text;
  stream.wait();
  EXPECT_THAT(others, ElementsAre(1, 2, 3));
}

TEST_F(MemoryCalls, RefuseFlagsThatAreNotKnown) {
  EXPECT_EQ(copy(from, to, nullptr, kUnknown), BP_UNSUPPORTED);
  EXPECT_EQ(copy(from, own, nullptr, 1), BP_UNSUPPORTED);
  run.flags = kUnknown;
  EXPECT_EQ(copy(), BP_UNSUPPORTED);
  EXPECT_THAT(text, HasSubstr("run.flags"));
  run.flags = 0;
  bp_buffer_t odd = from;
  odd.flags = kUnknown;
  EXPECT_EQ(copy(odd, own), BP_UNSUPPORTED);
  EXPECT_THAT(text, HasSubstr("what.from.flags"));
  odd.flags = 0;
  odd.reserved = 1;
  EXPECT_EQ(copy(odd, to), BP_UNSUPPORTED);
  EXPECT_THAT(text, HasSubstr("what.from.reserved"));
  void* pointer = nullptr;
  const bp_map_t map{sizeof map, BP_MAP_READ | 0x40000u, &from};
  EXPECT_EQ(api().memory_map(env.get(), &map, &pointer, nullptr), BP_UNSUPPORTED);
  EXPECT_EQ(pointer, nullptr);
  bp_external_t external{};
  external.size = sizeof external;
  external.kind = BP_EXTERNAL_HOST_POINTER;
  external.handle = reinterpret_cast<uintptr_t>(std::aligned_alloc(64, 64));
  external.bytes = 64;
  external.flags = kUnknown;
  const bp_import_t import{sizeof import, 0, &external};
  bp_buffer_t imported{};
  EXPECT_EQ(api().memory_import(env.get(), device, &import, &imported, nullptr), BP_UNSUPPORTED);
  std::free(reinterpret_cast<void*>(external.handle));
  EXPECT_THAT(others, ElementsAre(0, 0, 0));
}

TEST_F(MemoryCalls, RefuseToWriteToWhatIsReadOnly) {
  bp_buffer_t fixed = to;
  fixed.flags = BP_BUFFER_READ_ONLY;
  EXPECT_EQ(copy(from, fixed), BP_INVALID_ARGUMENT);
  EXPECT_THAT(text, HasSubstr("what.to is read-only"));
  const bp_fill_t fill{sizeof fill, 1, 0, &fixed, nullptr};
  EXPECT_EQ(api().memory_fill(env.get(), &fill, nullptr), BP_INVALID_ARGUMENT);
  void* pointer = nullptr;
  bp_map_t map{sizeof map, BP_MAP_WRITE, &fixed};
  EXPECT_EQ(api().memory_map(env.get(), &map, &pointer, nullptr), BP_INVALID_ARGUMENT);
  map.access = BP_MAP_READ;
  EXPECT_EQ(api().memory_map(env.get(), &map, &pointer, nullptr), BP_OK);
  EXPECT_EQ(pointer, others);
}

TEST_F(MemoryCalls, ClientBuffersAreMappedAndFilled) {
  const Buffer buffer = env.allocate(device, 12);
  buffer.fill(1.5f);
  EXPECT_EQ(copy(buffer.abi(), to), BP_OK);
  EXPECT_THAT(others, ElementsAre(1.5f, 1.5f, 1.5f));
  const Buffer host = env.allocate(device, 12);
  try {
    void* const pointer = host.map(BP_MAP_READ | BP_MAP_WRITE);
    host.unmap(pointer, BP_MAP_READ | BP_MAP_WRITE);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), BP_UNSUPPORTED);  // not every device can map its memory
  }
}

TEST_F(MemoryCalls, RefusePointsThatAreNone) {
  run.waits = &point;
  run.wait_count = 1;
  for (const uint32_t kind : {0u, 7u}) {
    point = ended.at(0);
    point.kind = kind;
    EXPECT_EQ(copy(), BP_INVALID_ARGUMENT) << kind;
  }
  for (const uint32_t kind : {BP_POINT_HOST, BP_POINT_NATIVE}) {
    point = {0, kind, 0, 0, 1};
    EXPECT_EQ(copy(), BP_INVALID_ARGUMENT) << kind;
  }
  point = ended.at(0);
  point.flags = kUnknown;
  EXPECT_EQ(copy(), BP_UNSUPPORTED);
  point = ended.at(0);
  point.device = 12345;
  EXPECT_EQ(copy(), BP_INVALID_ARGUMENT);
  point = bp_native_point(native, 12345, 0);
  EXPECT_EQ(copy(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(text, HasSubstr("run.waits.device is 12345"));
  run.waits = nullptr;
  EXPECT_EQ(copy(), BP_INVALID_ARGUMENT);
}

TEST_F(MemoryCalls, RefuseRunsThatNoCopyHas) {
  run.output = [](void*, uint32_t, uint32_t, const int64_t*, uint64_t, bp_tensor_t*) -> bp_status_t { return BP_OK; };
  EXPECT_EQ(copy(), BP_INVALID_ARGUMENT);
  run.output = nullptr;
  run.stream = nullptr;
  run.signals = &point;
  run.signal_count = 1;
  EXPECT_EQ(copy(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(text, HasSubstr("what.run.stream is NULL"));
  EXPECT_EQ(counters(env).copies, 0u);
}

TEST_F(MemoryCalls, RefuseHostBuffersWithoutAnAddress) {
  bp_buffer_t none = from;
  none.address = nullptr;
  EXPECT_EQ(copy(none, to), BP_INVALID_ARGUMENT);
  EXPECT_EQ(copy(from, none), BP_INVALID_ARGUMENT);
  EXPECT_EQ(copy(none, own), BP_INVALID_ARGUMENT);
  const bp_fill_t fill{sizeof fill, 1, 0, &none, nullptr};
  EXPECT_EQ(api().memory_fill(env.get(), &fill, nullptr), BP_INVALID_ARGUMENT);
}

TEST_F(MemoryCalls, BindRefusesTheSameBuffers) {
  Exec exec = env.compile(chain(1)).exec();
  const Tensor x = Tensor::of<float>({3}, {1, 2, 3});
  bp_tensor_t tensor = x.abi();
  tensor.buffer.reserved = 1;
  EXPECT_EQ(status([&] { exec.bind_memory(0, tensor); }), BP_UNSUPPORTED);
  EXPECT_THAT(text, HasSubstr("input 'x': buffer.reserved is 1"));
  tensor.buffer.reserved = 0;
  tensor.buffer.flags = 2;
  EXPECT_EQ(status([&] { exec.bind_memory(0, tensor); }), BP_UNSUPPORTED);
}

TEST_F(MemoryCalls, RefuseCopiesWithinAMemoryThatOverlap) {
  const Buffer both = env.allocate(device, 24);
  bp_buffer_t first = both.abi(), second = both.abi();
  first.bytes = 12;
  second.bytes = 16;
  second.offset += 8;
  EXPECT_EQ(copy(first, second), BP_INVALID_ARGUMENT);
  EXPECT_EQ(copy(second, first), BP_INVALID_ARGUMENT);
  EXPECT_THAT(text, HasSubstr("12 bytes from offset 8 overlap those at offset 0"));
  EXPECT_EQ(copy(first, first), BP_INVALID_ARGUMENT);
  EXPECT_EQ(counters(env).copies, 0u);
  second.bytes = 12;
  second.offset = both.abi().offset + 12;
  EXPECT_EQ(copy(first, second), BP_OK) << text;
}

TEST_F(MemoryCalls, RefuseBuffersWhosePlaceDoesNotExist) {
  Exec exec = env.compile(chain(1), pinned({{"*", "cpu"}})).exec();
  const std::vector<int64_t> extents{3};
  bp_tensor_t tensor = Tensor::of<float>({3}, {1, 2, 3}).abi();
  tensor.extents = extents.data();
  const auto refuse = [&](const bp_buffer_t& buffer, bp_status_t code, const std::string& why) {
    tensor.buffer = buffer;
    EXPECT_EQ(status([&] { exec.bind_memory(0, tensor); }), code) << text;
    EXPECT_THAT(text, HasSubstr(why));
    EXPECT_EQ(copy(buffer, to), code) << text;
    EXPECT_THAT(text, HasSubstr(why));
    EXPECT_EQ(copy(from, buffer), code) << text;
    const bp_fill_t fill{sizeof fill, 1, 0, &buffer, nullptr};
    EXPECT_EQ(status([&] { detail::call(api().memory_fill, env.get(), &fill); }), code) << text;
    const bp_map_t map{sizeof map, BP_MAP_READ, &buffer};
    void* pointer = nullptr;
    EXPECT_EQ(status([&] { detail::call(api().memory_map, env.get(), &map, &pointer); }), code) << text;
  };
  bp_buffer_t wrong = from;
  wrong.device = 77;
  refuse(wrong, BP_NOT_FOUND, "0x4d");
  wrong.device = 0;
  wrong.space = 99;
  refuse(wrong, BP_NOT_FOUND, "space is 99, but host memory that belongs to no device has space 0 only");
  wrong.device = device;
  refuse(wrong, BP_NOT_FOUND, "space is 99, but device 'partial' has 1");
  wrong.space = 0;
  refuse(wrong, BP_INVALID_ARGUMENT, "memory is NULL, but space 0 of device 'partial' is not host memory");
  wrong = own;
  wrong.space = 99;
  refuse(wrong, BP_NOT_FOUND, "space is 99");
  for (bp_buffer_t huge : {from, own}) {
    huge.offset = UINT64_MAX - 8;
    refuse(huge, BP_INVALID_ARGUMENT, "exceeds the address space");
  }
  EXPECT_EQ(counters(env).copies, 0u);
  wrong = from;  // host memory of the CPU backend's device
  wrong.device = env.devices()[0].info.id;
  EXPECT_EQ(copy(wrong, to), BP_OK) << text;
}

// The device sees what the host has written to imported memory only after a flush, and the reverse.
TEST(Memory, MappingsOfMemoryThatIsNotCoherentAreFlushed) {
  const Environment env = partial_environment({{"partial.memory", "flushed"}});
  const uint64_t device = env.devices()[1].info.id;
  alignas(64) float ours[16] = {1, 2, 3};
  bp_external_t external{};
  external.size = sizeof external;
  external.kind = BP_EXTERNAL_HOST_POINTER;
  external.handle = reinterpret_cast<uintptr_t>(ours);
  external.bytes = sizeof ours;
  const bp_import_t import{sizeof import, 0, &external};
  bp_buffer_t imported{};
  detail::call(api().memory_import, env.get(), device, &import, &imported);
  imported.bytes = sizeof ours;
  const auto mapped = [&](uint32_t access, const auto& use) {
    const bp_map_t what{sizeof what, access, &imported};
    void* pointer = nullptr;
    detail::call(api().memory_map, env.get(), &what, &pointer);
    EXPECT_EQ(pointer, ours);
    use();
    detail::call(api().memory_unmap, env.get(), &what, pointer);
  };
  mapped(BP_MAP_WRITE, [&] { ours[0] = 4; });
  const Buffer other = env.allocate(device, sizeof ours);
  env.copy(imported, other.abi(), sizeof ours);
  ours[0] = ours[1] = 0;
  env.copy(other.abi(), imported, sizeof ours);
  mapped(BP_MAP_READ, [&] {
    EXPECT_EQ(ours[0], 4);
    EXPECT_EQ(ours[1], 2);
  });
  const bp_release_t release{sizeof release, 0, &imported, nullptr};
  api().memory_release(env.get(), &release);
}

}  // namespace
}  // namespace backplane

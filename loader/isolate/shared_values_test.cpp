// SPDX-License-Identifier: Apache-2.0
// A process that changes the tensors it has seen, at any time: the islands of this process's backends compute with
// values that do not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "testing/client_fixture.h"

namespace backplane::shared_values {
namespace {

using ::testing::HasSubstr;

const std::string kCpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";
const std::string kFake = BACKPLANE_BUILD_DIR "/tests/plugins/fake.so";
const std::string kFault = BACKPLANE_BUILD_DIR "/tests/plugins/fault.so";

constexpr int64_t kElements = 1 << 18;
const std::vector<int64_t> kExtents = {kElements};
constexpr uint64_t kBytes = kElements * sizeof(float);

// The fault backend computes Abs in a process of its own, and from its first run on keeps writing other numbers to
// the input and the output. The CPU backend computes the rest, here.
Environment changing() {
  return environment({kFault, kCpu},
                     {{"loader.isolate", "fault"}, {"fault.ops", "Abs"}, {"fault.what", "keeps_writing"}});
}

SessionOptions on_both() {
  SessionOptions how;
  how.devices = {"fault", "cpu"};
  how.pins = {{"op=Abs", "fault"}};
  return how;
}

uint64_t id_of(const Environment& env, std::string_view name) {
  for (const auto& device : env.devices())
    if (device.name == name) return device.info.id;
  return 0;
}

// Memory of the isolated device, which its process maps.
Buffer shareable(const Environment& env) {
  return env.allocate(id_of(env, "fault"), kBytes);
}

bp_tensor_t floats(const Buffer& buffer) {
  bp_tensor_t tensor = buffer.tensor(BP_DTYPE_FLOAT, kExtents);
  tensor.buffer.device = 0;
  return tensor;
}

std::vector<float> ones() {
  return std::vector<float>(kElements, 1.0f);
}

// The process has mapped the buffer once this returns, and changes it.
void show(const Environment& env, const Buffer& buffer) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, kExtents);
  Exec exec = env.compile(graph.finish({graph.node("Abs", "y", {x})}), on_both()).exec();
  exec.bind_memory(0, floats(buffer));
  exec.run();
}

bool changes(const Buffer& buffer) {
  auto* const first = static_cast<volatile float*>(buffer.abi().address);
  *first = 1;
  for (int i = 0; i < 10'000'000; ++i)
    if (*first != 1) return true;
  return false;
}

// Whether the buffer is in a file that other processes can map.
bool is_shareable(const Buffer& buffer) {
  const auto at = reinterpret_cast<unsigned long>(buffer.abi().address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &first, &end) == 2 && first <= at && at < end)
      return line.find("memfd:") != line.npos;
  }
  return false;
}

TEST(SharedValues, OnlyMemoryOfAnIsolatedDeviceIsShareable) {
  const Environment env = changing();
  const Buffer theirs = shareable(env), ours = env.allocate(id_of(env, "cpu"), kBytes);
  EXPECT_TRUE(is_shareable(theirs));
  EXPECT_FALSE(is_shareable(ours));
}

TEST(SharedValues, AnInputIsReadOnce) {
  const Environment env = changing();
  const Buffer shared = shareable(env);
  show(env, shared);
  ASSERT_TRUE(changes(shared));
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, kExtents);
  const uint32_t most = graph.node("ReduceMax", "most", {x}), least = graph.node("ReduceMin", "least", {x});
  Exec exec = env.compile(graph.finish({graph.node("Sub", "above", {x, most}), graph.node("Sub", "below", {x, least})}),
                          on_both())
                  .exec();
  exec.bind_memory(0, floats(shared));
  for (int i = 0; i < 10; ++i) {
    exec.run();
    EXPECT_LE(std::ranges::max(exec.output(0u).values<float>()), 0) << "run " << i;
    EXPECT_GE(std::ranges::min(exec.output(1u).values<float>()), 0) << "run " << i;
  }
}

TEST(SharedValues, AValueBetweenIslandsIsReadOnce) {
  const Environment env = changing();
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, kExtents);
  const uint32_t v = graph.node("Abs", "v", {x});
  const uint32_t most = graph.node("ReduceMax", "most", {v});
  const uint32_t y = graph.node("Sub", "y", {v, most});
  // The process writes `v` too if it is an output.
  Exec exec = env.compile(graph.finish({v, y}), on_both()).exec();
  const Buffer result = shareable(env);
  exec.bind("x", Tensor::of<float>(kExtents, ones()));
  for (const bool is_bound : {false, true}) {
    if (is_bound) exec.bind_memory(BP_SLOT_OUTPUT, floats(result));
    for (int i = 0; i < 10; ++i) {
      exec.run();
      EXPECT_LE(std::ranges::max(exec.output(1u).values<float>()), 0) << "run " << i;
    }
  }
}

TEST(SharedValues, AnOutputIsNotReadAgain) {
  const Environment env = changing();
  const Buffer shared = shareable(env);
  show(env, shared);
  ASSERT_TRUE(changes(shared));
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, kExtents);
  const uint32_t y = graph.node("Neg", "y", {x});
  Exec exec = env.compile(graph.finish({y, graph.node("ReduceMax", "most", {y})}), on_both()).exec();
  exec.bind("x", Tensor::of<float>(kExtents, ones()));
  exec.bind_memory(BP_SLOT_OUTPUT, floats(shared));
  for (int i = 0; i < 10; ++i) {
    exec.run();
    EXPECT_EQ(std::ranges::max(exec.output(1u).values<float>()), -1) << "run " << i;
  }
}

TEST(SharedValues, AProgramThatMustUpdateAnInputInPlaceNeedsOtherMemory) {
  const Environment env =
      environment({kFake, kFault}, {{"loader.isolate", "fault"}, {"fake.ops", "Neg"}, {"fake.must", "1"}});
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, kExtents);
  SessionOptions how;
  how.devices = {"fake"};
  Exec exec = env.compile(graph.finish({graph.node("Neg", "y", {x})}), how).exec();
  const Buffer shared = shareable(env), own = env.allocate(id_of(env, "fake"), kBytes);
  for (const uint32_t slot : {0u, BP_SLOT_OUTPUT}) exec.bind_memory(slot, floats(shared));
  const Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_UNSUPPORTED);
  EXPECT_THAT(error.text(), HasSubstr("allocated for an isolated device"));
  for (const uint32_t slot : {0u, BP_SLOT_OUTPUT}) exec.bind_memory(slot, floats(own));
  EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_OK);
}

}  // namespace
}  // namespace backplane::shared_values

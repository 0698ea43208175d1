// SPDX-License-Identifier: Apache-2.0
// NodeProgram: the memory of values and the arguments of kernels. Also the planning of an arena.
#include "backplane/sdk/node_program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "abi/testing/plugin_under_test.h"

namespace {

using namespace backplane::sdk;
using backplane::testing::TinyGraph;
using ::testing::ElementsAre;

using Kernel = std::function<void(const NodeCall&)>;

// y = a + b, where b may be omitted.
std::unique_ptr<Kernel> make_sum(const Node& node) {
  if (node.op_type() != "Sum") throw Error(BP_UNSUPPORTED, "only Sum", node.id());
  return std::make_unique<Kernel>([](const NodeCall& call) {
    const float *a = call.input<float>(0), *b = call.input<float>(1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % alignof(float), 0u);
    for (uint64_t i = 0; i < call.count(); ++i) call.output<float>(0)[i] = a[i] + (b == nullptr ? 0 : b[i]);
  });
}

// A device, together with the backend that it needs for its construction.
class TestDevice : public Device {
 public:
  using Device::Device;
  void cover(Coverage&) override {}
  std::unique_ptr<Program> compile(const Compile& what) override {
    return std::make_unique<NodeProgram<Kernel>>(*this, what, make_sum);
  }
};
class TestBackend : public Backend {
 public:
  using Backend::Backend;
  uint32_t device_count(std::string&) override { return 1; }
  bp_device_info_t device_info(uint32_t) override { return {}; }
  std::unique_ptr<Device> open(uint32_t, const Options&, const bp_device_open_t&) override {
    return std::make_unique<TestDevice>(*this);
  }
};

class NodeProgramTest : public ::testing::Test {
 protected:
  NodeProgramTest() {
    host_.size = sizeof host_;
    how_.size = sizeof how_;
    how_.host = &host_;
    backend_ = std::make_unique<TestBackend>(how_);
    device_ = backend_->open(0, {}, {});
  }
  const NodeProgram<Kernel>& compile() {
    bp_compile_t what{};
    what.size = sizeof what;
    what.graph = graph.get();
    program_ = device_->compile(Compile(backend_->host(), what));
    instance_ = program_->instance();
    return static_cast<const NodeProgram<Kernel>&>(*program_);
  }
  void bind(uint32_t slot, std::vector<float>& data) {
    const auto extent = static_cast<int64_t>(data.size());
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = BP_DTYPE_FLOAT;
    tensor.rank = 1;
    tensor.extents = &extent;
    tensor.buffer.address = data.data();
    tensor.buffer.bytes = data.size() * sizeof(float);
    bp_binding_t binding{};
    binding.size = sizeof binding;
    binding.slot = slot;
    binding.tensor = &tensor;
    instance_->bind(binding);
  }
  void run() {
    bp_run_t run{};
    run.size = sizeof run;
    instance_->submit(run);
  }

  TinyGraph graph;
  std::vector<float> x{1, 2, 3}, y = std::vector<float>(3, -1), z = std::vector<float>(3, -1);

 private:
  bp_host_t host_{};
  bp_backend_create_t how_{};
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Instance> instance_;
};

TEST_F(NodeProgramTest, AChainNeedsMemoryForTwoValues) {
  uint32_t value = graph.input("x", {3});
  const uint32_t w = graph.weight("w", {3}, {1, 1, 1});
  for (int i = 0; i < 20; ++i) value = graph.node("Sum", 13, {value, w}, {3});
  graph.output(value);
  EXPECT_EQ(compile().arena_bytes(), 2 * HostBlock::kAlignment);
  bind(0, x);
  bind(BP_SLOT_OUTPUT, y);
  run();
  EXPECT_THAT(y, ElementsAre(21, 22, 23));
}

TEST_F(NodeProgramTest, WhatIsReadLaterIsNotOverwritten) {
  const uint32_t in = graph.input("x", {3});
  const uint32_t early = graph.node("Sum", 13, {in, in}, {3});
  uint32_t value = early;
  for (int i = 0; i < 5; ++i) value = graph.node("Sum", 13, {value, in}, {3});
  graph.output(graph.node("Sum", 13, {value, early}, {3}));
  EXPECT_EQ(compile().arena_bytes(), 3 * HostBlock::kAlignment);
  bind(0, x);
  bind(BP_SLOT_OUTPUT, y);
  run();
  EXPECT_THAT(y, ElementsAre(9, 18, 27));
}

TEST_F(NodeProgramTest, OmittedInputsAreNull) {
  graph.output(graph.node("Sum", 13, {graph.input("x", {3}), BP_NONE}, {3}));
  compile();
  bind(0, x);
  bind(BP_SLOT_OUTPUT, y);
  run();
  EXPECT_THAT(y, ElementsAre(1, 2, 3));
}

TEST_F(NodeProgramTest, AnOutputMayBeReadAndMayBeAnInputAWeightOrAnother) {
  const uint32_t in = graph.input("x", {3}), w = graph.weight("w", {3}, {7, 8, 9});
  const uint32_t sum = graph.node("Sum", 13, {in, w}, {3});
  const uint32_t more = graph.node("Sum", 13, {sum, in}, {3});
  for (const uint32_t value : {sum, more, sum, in, w}) graph.output(value);
  EXPECT_EQ(compile().arena_bytes(), 0u);
  std::vector<std::vector<float>> out(5, y);
  bind(0, x);
  for (uint32_t i = 0; i < 5; ++i) bind(BP_SLOT_OUTPUT + i, out[i]);
  run();
  EXPECT_THAT(out[0], ElementsAre(8, 10, 12));
  EXPECT_THAT(out[1], ElementsAre(9, 12, 15));
  EXPECT_THAT(out[2], ElementsAre(8, 10, 12));
  EXPECT_THAT(out[3], ElementsAre(1, 2, 3));
  EXPECT_THAT(out[4], ElementsAre(7, 8, 9));
}

TEST_F(NodeProgramTest, TensorsWithoutElementsAreComputedToo) {
  const uint32_t in = graph.input("x", {0}), w = graph.weight("w", {0}, {});
  graph.output(graph.node("Sum", 13, {graph.node("Sum", 13, {in, w}, {0}), in}, {0}));
  compile();
  std::vector<float> none, result;
  bind(0, none);
  bind(BP_SLOT_OUTPUT, result);
  run();
}

TEST_F(NodeProgramTest, RefusesWhatHasNoKernelOrNoSize) {
  graph.output(graph.node("Sum", 13, {graph.input("open", {-1})}, {-1}));
  EXPECT_THROW(compile(), Error);
  graph = TinyGraph();
  graph.output(graph.node("Mul", 13, {graph.input("x", {3})}, {3}));
  try {
    compile();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status, BP_UNSUPPORTED);
    EXPECT_EQ(error.node, 100u);
  }
}

TEST(Arena, TensorsThatNeverLiveAtOnceShareMemory) {
  std::vector<ArenaTensor> tensors(4);
  const auto lives = [&](size_t i, uint64_t bytes, size_t first, size_t last) {
    tensors[i].bytes = bytes;
    tensors[i].touch(first);
    tensors[i].touch(last);
  };
  lives(0, 100, 0, 1);
  lives(1, 10, 1, 2);
  lives(2, 100, 2, 3);
  tensors[3].bytes = 1000;  // no step uses it
  EXPECT_EQ(pack(tensors, 64), 192u);
  EXPECT_EQ(tensors[0].offset, tensors[2].offset);
  EXPECT_EQ(tensors[1].offset, 128u);
}

// Whether no two tensors that are live in one step overlap in memory, and all lie within `bytes`.
::testing::AssertionResult is_legal(std::vector<ArenaTensor> tensors, uint64_t bytes) {
  std::erase_if(tensors, [](const ArenaTensor& tensor) { return !tensor.touched(); });
  std::ranges::sort(tensors, {}, &ArenaTensor::first);
  std::map<uint64_t, const ArenaTensor*> live;  // by offset
  for (const ArenaTensor& tensor : tensors) {
    std::erase_if(live, [&](const auto& other) { return other.second->last < tensor.first; });
    const auto after = live.upper_bound(tensor.offset);
    const bool fits = after == live.end() || tensor.offset + tensor.bytes <= after->first;
    const bool clear =
        after == live.begin() || std::prev(after)->first + std::prev(after)->second->bytes <= tensor.offset;
    if (!fits || !clear || tensor.offset + tensor.bytes > bytes)
      return ::testing::AssertionFailure() << "at offset " << tensor.offset << ", " << tensor.bytes << " bytes";
    live[tensor.offset] = &tensor;
  }
  return ::testing::AssertionSuccess();
}

TEST(Arena, IsLegalForTensorsOfAnyLifetimes) {
  std::minstd_rand random(1);
  for (const size_t longest : {2, 50, 5000}) {  // the last ones overlap in over 2,000,000 pairs
    std::vector<ArenaTensor> tensors(4000);
    uint64_t all = 0;
    for (ArenaTensor& tensor : tensors) {
      tensor.bytes = 1 + random() % 1000;
      tensor.first = random() % 5000;
      tensor.last = tensor.first + random() % longest;
      all += rounded_up(tensor.bytes, 64);
    }
    const uint64_t bytes = pack(tensors, 64);
    EXPECT_TRUE(is_legal(tensors, bytes)) << longest;
    EXPECT_LE(bytes, all);
  }
}

TEST(Arena, OfAChainHoldsTwoTensors) {
  std::vector<ArenaTensor> tensors(100000);
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].bytes = 64;
    tensors[i].touch(i);
    tensors[i].touch(i + 1);
  }
  EXPECT_EQ(pack(tensors, 64), 128u);
}

}  // namespace

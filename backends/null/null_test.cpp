// SPDX-License-Identifier: Apache-2.0
// Tests the null backend through the C ABI, as a host uses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "abi/testing/plugin_under_test.h"

namespace {

using backplane::testing::Detail;
using backplane::testing::PluginUnderTest;
using backplane::testing::TinyGraph;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Null : public ::testing::Test {
 protected:
  PluginUnderTest null{BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_null.so"};
  Detail detail;
};

TEST_F(Null, RefusesAHostOfAnotherMajorVersionWithAReason) {
  bp_host_offer_t offer{};
  offer.size = sizeof offer;
  offer.version_min = offer.version_max = BP_MAKE_VERSION(2, 0);
  offer.sanitizer = null.plugin->sanitizer;
  EXPECT_EQ(null.query(&offer)->version, 0u);
  EXPECT_EQ(null.query(&offer)->refusal, BP_INCOMPATIBLE);
  EXPECT_GT(null.query(&offer)->refusal_text.size, 0u);
  EXPECT_EQ(null.query(nullptr)->refusal, BP_INVALID_ARGUMENT);
  offer.version_min = BP_ABI_VERSION_MIN;
  EXPECT_EQ(null.query(&offer)->version, BP_ABI_VERSION);
  EXPECT_EQ(null.query(&offer), null.query(&offer));
}

TEST_F(Null, OffersOnlyTheSlotsThatItImplements) {
  EXPECT_EQ(null.plugin->memory, nullptr);
  EXPECT_EQ(null.plugin->cache, nullptr);
  EXPECT_EQ(null.plugin->device->health, nullptr);
  EXPECT_EQ(null.plugin->coverage->review, nullptr);
  EXPECT_EQ(null.plugin->program->output_extents, nullptr);
}

TEST_F(Null, GivesReasonsForRefusals) {
  TinyGraph g;
  const uint32_t x = g.input("x", {2, 3}), row = g.input("row", {3}), open = g.input("open", {-1}),
                 ints = g.input("i", {2}, BP_DTYPE_INT32);
  g.node("Relu", 14, {x}, {2, 3});
  g.node("Conv", 22, {x}, {2, 3});
  g.node("Relu", 99, {x}, {2, 3});
  g.node("Add", 14, {x, row}, {2, 3});
  g.node("Neg", 13, {open}, {-1});
  g.node("Neg", 13, {ints}, {2}, BP_DTYPE_INT32);
  auto answers = null.coverage(g.get());
  EXPECT_EQ(answers[0].answer, BP_ANSWER_YES);
  EXPECT_EQ(answers[1].reason, BP_REASON_OPERATOR);
  EXPECT_EQ(answers[2].reason, BP_REASON_OPSET);
  EXPECT_EQ(answers[3].reason, BP_REASON_SHAPE);
  EXPECT_EQ(answers[4].reason, BP_REASON_SHAPE);
  EXPECT_EQ(answers[5].reason, BP_REASON_DTYPE);
  EXPECT_THAT(answers[2].detail, HasSubstr("known forms: 14"));
}

TEST_F(Null, RefusesToCompileWhatItDoesNotCoverAndNamesTheNode) {
  TinyGraph g;
  g.output(g.node("Conv", 22, {g.input("x", {2})}, {2}));
  bp_program_t* program = reinterpret_cast<bp_program_t*>(1);
  EXPECT_EQ(null.compile(g.get(), &program, detail), BP_UNSUPPORTED);
  EXPECT_EQ(program, nullptr);
  EXPECT_EQ(detail.error.node, 100u);
  EXPECT_THAT(detail.text(), HasSubstr("node0"));
}

// y = Relu(-(x + w)): three kernels, an unaligned weight and intermediate results.
class NullProgram : public Null {
 protected:
  void SetUp() override {
    const uint32_t x = graph.input("x", {4});
    const uint32_t w = graph.weight("w", {4}, {1, 1, 1, 1});
    graph.output(graph.node("Relu", 14, {graph.node("Neg", 13, {graph.node("Add", 14, {x, w}, {4})}, {4})}, {4}));
    ASSERT_EQ(null.compile(graph.get(), &program, detail), BP_OK) << detail.text();
    ASSERT_EQ(null.plugin->instance->create(program, nullptr, &instance, &detail.error), BP_OK) << detail.text();
  }
  void TearDown() override {
    null.plugin->instance->destroy(instance);
    null.plugin->program->destroy(program);
  }
  TinyGraph graph;
  bp_program_t* program = nullptr;
  bp_instance_t* instance = nullptr;
  std::vector<float> x{-3, -1, 0, 2}, y = std::vector<float>(4, -7);
};

TEST_F(NullProgram, ComputesAndFollowsNewDataWithoutRebinding) {
  ASSERT_EQ(null.bind(instance, 0, {4}, x, detail), BP_OK) << detail.text();
  ASSERT_EQ(null.bind(instance, BP_SLOT_OUTPUT, {4}, y, detail), BP_OK) << detail.text();
  ASSERT_EQ(null.run(instance, detail), BP_OK) << detail.text();
  EXPECT_THAT(y, ElementsAre(2, 0, 0, 0));
  x = {-9, 9, -9, 9};
  ASSERT_EQ(null.run(instance, detail), BP_OK);
  EXPECT_THAT(y, ElementsAre(8, 0, 8, 0));
}

TEST_F(NullProgram, NamesWhatIsWrongWithABinding) {
  EXPECT_EQ(null.run(instance, detail), BP_BAD_STATE);
  EXPECT_THAT(detail.text(), HasSubstr("input 'x' is not bound"));
  EXPECT_EQ(null.bind(instance, 0, {2, 2}, x, detail), BP_TYPE_MISMATCH);
  EXPECT_EQ(null.bind(instance, 0, {5}, x, detail), BP_TYPE_MISMATCH);
  EXPECT_EQ(null.bind(instance, 7, {4}, x, detail), BP_INVALID_ARGUMENT);
  std::vector<float> small(3);
  EXPECT_EQ(null.bind(instance, 0, {4}, small, detail), BP_BUFFER_TOO_SMALL);
  EXPECT_THAT(detail.text(), HasSubstr("needs 16 bytes but was given 12"));
  const int64_t four = 4;
  EXPECT_EQ(null.plugin->instance->extents(instance, std::array{bp_slot_extents_t{0, 1, &four}}.data(), 1,
                                           sizeof(bp_slot_extents_t), &detail.error),
            BP_BAD_STATE);
}

TEST_F(NullProgram, EveryThreadMayHaveAnInstance) {
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      bp_instance_t* own = nullptr;
      Detail d;
      std::vector<float> in(4, -static_cast<float>(t)), out(4);
      null.plugin->instance->create(program, nullptr, &own, &d.error);
      null.bind(own, 0, {4}, in, d);
      null.bind(own, BP_SLOT_OUTPUT, {4}, out, d);
      for (int i = 0; i < 1000; ++i) null.run(own, d);
      right[t] = out[3] == std::max(0.0f, static_cast<float>(t) - 1);
      null.plugin->instance->destroy(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(right, ElementsAre(1, 1, 1, 1));
}

TEST_F(NullProgram, AForkedChildIsRefused) {
  const pid_t child = fork();
  if (child == 0) _exit(null.run(instance, detail) == BP_FORKED ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace

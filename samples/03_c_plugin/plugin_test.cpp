// SPDX-License-Identifier: Apache-2.0
// Tests the plugin in plain C through the C ABI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/testing/plugin_under_test.h"

namespace {

using backplane::testing::Detail;
using backplane::testing::PluginUnderTest;
using backplane::testing::TinyGraph;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CPlugin : public ::testing::Test {
 protected:
  PluginUnderTest under_test{C_PLUGIN};
  const bp_plugin_t* plugin = under_test.plugin;
  Detail detail;
};

TEST_F(CPlugin, Negotiates) {
  bp_host_offer_t offer{};
  offer.size = sizeof offer;
  offer.version_min = offer.version_max = BP_MAKE_VERSION(2, 0);
  EXPECT_EQ(under_test.query(&offer)->refusal, BP_INCOMPATIBLE);
  EXPECT_EQ(plugin->version, BP_ABI_VERSION);
}

TEST_F(CPlugin, SplitsAnIslandIntoNodes) {
  TinyGraph g;
  const uint32_t x = g.input("x", {4});
  g.output(g.node("Relu", 14, {g.node("Add", 14, {x, x}, {4})}, {4}));
  EXPECT_EQ(under_test.coverage(g.get())[1].answer, BP_ANSWER_YES);
  std::vector<uint32_t> parts;
  bp_review_t review{};
  review.size = sizeof review;
  review.split_self = &parts;
  review.split = [](void* self, const uint32_t* nodes, uint32_t count) {
    static_cast<std::vector<uint32_t>*>(self)->insert(static_cast<std::vector<uint32_t>*>(self)->end(), nodes,
                                                      nodes + count);
  };
  bp_compile_t what{};
  what.size = sizeof what;
  what.graph = g.get();
  EXPECT_EQ(plugin->coverage->review(under_test.device, &what, &review, nullptr), BP_OK);
  EXPECT_EQ(review.answer, BP_REVIEW_SPLIT);
  EXPECT_THAT(parts, ElementsAre(0, 1));
}

TEST_F(CPlugin, RunsWhatItCoversAndRefusesTheRest) {
  TinyGraph g;
  const uint32_t a = g.input("a", {2, 2}), b = g.input("b", {2, 2});
  g.output(g.node("Add", 14, {a, b}, {2, 2}));
  bp_program_t* program = nullptr;
  bp_instance_t* instance = nullptr;
  ASSERT_EQ(under_test.compile(g.get(), &program, detail), BP_OK) << detail.text();
  ASSERT_EQ(plugin->instance->create(program, nullptr, &instance, nullptr), BP_OK);
  std::vector<float> one{1, 2, 3, 4}, two{10, 20, 30, 40}, sum(4);
  EXPECT_EQ(under_test.run(instance, detail), BP_BAD_STATE);
  EXPECT_EQ(under_test.bind(instance, 0, {2, 2}, one, detail), BP_OK);
  EXPECT_EQ(under_test.bind(instance, 1, {2, 2}, two, detail), BP_OK);
  EXPECT_EQ(under_test.bind(instance, BP_SLOT_OUTPUT, {2, 2}, sum, detail), BP_OK);
  EXPECT_EQ(under_test.bind(instance, 2, {2, 2}, sum, detail), BP_INVALID_ARGUMENT);
  EXPECT_EQ(under_test.run(instance, detail), BP_OK) << detail.text();
  EXPECT_THAT(sum, ElementsAre(11, 22, 33, 44));
  plugin->instance->destroy(instance);
  plugin->program->destroy(program);

  TinyGraph other;
  other.output(other.node("Mul", 14, {other.input("x", {2})}, {2}));
  EXPECT_EQ(other.get()->node_count, 1u);
  EXPECT_EQ(under_test.coverage(other.get())[0].reason, BP_REASON_OPERATOR);
  EXPECT_EQ(under_test.compile(other.get(), &program, detail), BP_UNSUPPORTED);
  EXPECT_EQ(detail.error.node, 100u);
  EXPECT_THAT(detail.text(), HasSubstr("covered"));
}

}  // namespace

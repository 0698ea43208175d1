// SPDX-License-Identifier: Apache-2.0
// Omitted outputs. The loader's import adds those that ONNX requires; another host may not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

HostTensor floats(std::vector<int64_t> extents, const Floats& data) {
  return HostTensor::of(BP_DTYPE_FLOAT, std::move(extents), data);
}

class OmittedOutput : public ::testing::Test {
 protected:
  Plugin plugin;
};

TEST_F(OmittedOutput, TheFirstIsRefusedWhereItIsAlwaysComputed) {
  struct Case {
    const char* op;
    uint32_t version;
    std::vector<std::string> inputs, outputs;
    bp_dtype_t dtype = BP_DTYPE_FLOAT;
    Attributes attributes;
  };
  const std::vector<int64_t> kernel{2, 2}, shape{1, 2, 4, 4};
  for (const Case& each : std::vector<Case>{
           {"Relu", 14, {"x"}, {"", "y"}},
           {"Dropout", 22, {"x"}, {"", "y"}, BP_DTYPE_BOOL},
           {"MaxPool", 22, {"x"}, {"", "y"}, BP_DTYPE_INT64, {{"kernel_shape", kernel}}},
           {"DynamicQuantizeLinear", 11, {"x"}, {"", "y"}},
           {"LayerNormalization", 17, {"x", "row"}, {"", "y"}},
           {"BatchNormalization",
            15,
            {"x", "c", "c", "c", "c"},
            {"", "y"},
            BP_DTYPE_FLOAT,
            {{"training_mode", int64_t{1}}}},
           {"com.microsoft::SkipLayerNormalization", 1, {"x", "x", "row"}, {"", "", "", "y"}},
       }) {
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, shape).input("row", BP_DTYPE_FLOAT, {4}).input("c", BP_DTYPE_FLOAT, {2});
    b.node(each.op, each.version, each.inputs, each.outputs, each.dtype, each.attributes).output("y");
    const Compiled program(plugin, b.graph());
    EXPECT_EQ(program.status, BP_UNSUPPORTED) << each.op;
    EXPECT_THAT(program.text, HasSubstr("output 0 is omitted")) << each.op;
  }
}

TEST_F(OmittedOutput, TheFirstOfSplitTopKAndUniqueIsNotWritten) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {4}).weight<int64_t>("k", BP_DTYPE_INT64, {1}, {2});
  b.node("Split", 18, {"x"}, {"", "part"}, BP_DTYPE_FLOAT, {{"num_outputs", int64_t{2}}});
  b.node("TopK", 24, {"x", "k"}, {"", "indices"}, BP_DTYPE_INT64);
  b.node("Unique", 11, {"x"}, {"", "", "", "counts"}, BP_DTYPE_INT64);
  b.output("part").output("indices").output("counts");
  Compiled program(plugin, b.graph());
  const Outcome run = program.run({floats({4}, {1, 7, 5, 1})});
  ASSERT_EQ(run.status, BP_OK) << program.text << run.text;
  EXPECT_THAT(run.outputs[0].as<float>(), ElementsAre(5, 1));
  EXPECT_THAT(run.outputs[1].as<int64_t>(), ElementsAre(1, 2));
  EXPECT_THAT(run.outputs[2].as<int64_t>(), ElementsAre(2, 1, 1));
}

TEST_F(OmittedOutput, TheFirstOfLstmAndIfIsNotWritten) {
  GraphBuilder then_body, else_body, b;
  b.input("x", BP_DTYPE_FLOAT, {1, 1, 1}).input("w", BP_DTYPE_FLOAT, {1, 4, 1}).input("yes", BP_DTYPE_BOOL, {});
  b.node("LSTM", 22, {"x", "w", "w"}, {"", "", "cell"}, BP_DTYPE_FLOAT, {{"hidden_size", int64_t{1}}});
  then_body.capture("x", b).node("Neg", 13, {"x"}, {"n"}).node("Abs", 13, {"x"}, {"a"}).output("n").output("a");
  else_body.capture("x", b).node("Abs", 13, {"x"}, {"a"}).node("Neg", 13, {"x"}, {"n"}).output("a").output("n");
  b.node("If", 25, {"yes"}, {"", "chosen"}, BP_DTYPE_FLOAT, {{"then_branch", &then_body}, {"else_branch", &else_body}});
  b.output("cell").output("chosen");
  Compiled program(plugin, b.graph());
  const Outcome run = program.run(
      {floats({1, 1, 1}, {-2}), floats({1, 4, 1}, {0, 0, 0, 0}), HostTensor::of<uint8_t>(BP_DTYPE_BOOL, {}, {1})});
  ASSERT_EQ(run.status, BP_OK) << program.text << run.text;
  EXPECT_THAT(run.outputs[0].as<float>(), ElementsAre(0));
  EXPECT_THAT(run.outputs[1].as<float>(), ElementsAre(2));
}

// Later outputs may be omitted for every operator.
TEST_F(OmittedOutput, OneInTheMiddleIsNotWritten) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {4});
  b.node("DynamicQuantizeLinear", 11, {"x"}, {"q", "", "zero"}, BP_DTYPE_UINT8);
  b.node("LayerNormalization", 17, {"x", "x"}, {"n", "", "deviation"});
  b.output("q").output("zero").output("deviation");
  Compiled program(plugin, b.graph());
  const Outcome run = program.run({floats({4}, {-255, 0, 255, 0})});
  ASSERT_EQ(run.status, BP_OK) << program.text << run.text;
  EXPECT_THAT(run.outputs[0].as<uint8_t>(), ElementsAre(0, 128, 255, 128));
  EXPECT_THAT(run.outputs[1].as<uint8_t>(), ElementsAre(128));
}

}  // namespace
}  // namespace backplane::cpu::testing

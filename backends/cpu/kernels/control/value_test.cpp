// SPDX-License-Identifier: Apache-2.0
// Control flow, strings and sequences through the plugin's C ABI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Longs = std::vector<int64_t>;
using Words = std::vector<std::string>;

HostTensor floats(Longs extents, const std::vector<float>& data) {
  return HostTensor::of(BP_DTYPE_FLOAT, std::move(extents), data);
}
HostTensor longs(Longs extents, const Longs& data) {
  return HostTensor::of(BP_DTYPE_INT64, std::move(extents), data);
}

class Values : public ::testing::Test {
 protected:
  Plugin plugin;

  // Adds the first two inputs of a loop body, and its first output, which is the condition, unchanged.
  static GraphBuilder& begin_body(GraphBuilder& b) {
    b.input("round", BP_DTYPE_INT64, {}).input("go", BP_DTYPE_BOOL, {});
    b.node("Identity", 25, {"go"}, {"on"}, BP_DTYPE_BOOL).output("on");
    return b;
  }
};

// A branch inside a loop reads two outer values: one that a step of the main graph computed, and one of the loop body.
TEST_F(Values, BranchInALoopReadsBothGraphsAroundIt) {
  GraphBuilder main, body, add, keep;
  main.input("x", BP_DTYPE_FLOAT, {2}).input("rounds", BP_DTYPE_INT64, {});
  main.node("Neg", 13, {"x"}, {"step"});
  begin_body(body).input("sum", BP_DTYPE_FLOAT).capture("step", main);
  body.weight<int64_t>("two", BP_DTYPE_INT64, {}, {2}).weight<int64_t>("zero", BP_DTYPE_INT64, {}, {0});
  body.node("Mod", 13, {"round", "two"}, {"odd"}, BP_DTYPE_INT64);
  body.node("Equal", 19, {"odd", "zero"}, {"even"}, BP_DTYPE_BOOL);
  add.capture("sum", body).capture("step", body).node("Add", 14, {"sum", "step"}, {"added"}).output("added");
  keep.capture("sum", body).node("Identity", 25, {"sum"}, {"kept"}).output("kept");
  body.node("If", 25, {"even"}, {"next"}, BP_DTYPE_FLOAT, {{"then_branch", &add}, {"else_branch", &keep}});
  body.node("Identity", 25, {"next"}, {"seen"}).output("next").output("seen");
  main.node("Loop", 25, {"rounds", "", "x"}, {"last", "all"}, BP_DTYPE_FLOAT, {{"body", &body}});
  main.output("last").output("all");
  Compiled program(plugin, main.graph());
  Outcome run = program.run({floats({2}, {1, 10}), longs({}, {5})});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  EXPECT_THAT(run.outputs[0].as<float>(), ElementsAre(-2, -20));
  EXPECT_EQ(run.outputs[1].extents, (Longs{5, 2}));
  EXPECT_THAT(run.outputs[1].as<float>(), ElementsAre(0, 0, 0, 0, -1, -10, -1, -10, -2, -20));
}

TEST_F(Values, LoopCarriesATensorThatGrows) {
  GraphBuilder main, body;
  main.input("x", BP_DTYPE_FLOAT, {1}).input("rounds", BP_DTYPE_INT64, {}).input("go", BP_DTYPE_BOOL, {});
  begin_body(body).input("grown", BP_DTYPE_FLOAT).capture("x", main);
  body.node("Concat", 13, {"grown", "x"}, {"next"}, BP_DTYPE_FLOAT, {{"axis", int64_t{0}}});
  body.node("Size", 25, {"next"}, {"size"}, BP_DTYPE_INT64).output("next").output("size");
  main.node("Loop", 25, {"rounds", "go", "x"}, {"last", "sizes"}, BP_DTYPE_FLOAT, {{"body", &body}});
  main.type("sizes", BP_DTYPE_INT64, {-1}).output("last").output("sizes");
  Compiled program(plugin, main.graph());
  HostTensor yes = HostTensor::of<uint8_t>(BP_DTYPE_BOOL, {}, {1}),
             no = HostTensor::of<uint8_t>(BP_DTYPE_BOOL, {}, {0});
  Outcome run = program.run({floats({1}, {7}), longs({}, {3}), yes});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  EXPECT_THAT(run.outputs[0].as<float>(), ElementsAre(7, 7, 7, 7));
  EXPECT_THAT(run.outputs[1].as<int64_t>(), ElementsAre(2, 3, 4));

  for (const auto& [rounds, go] : {std::pair{int64_t{0}, yes}, {int64_t{3}, no}}) {
    Outcome none = program.run({floats({1}, {7}), longs({}, {rounds}), go});
    ASSERT_EQ(none.status, BP_OK) << none.text;
    EXPECT_THAT(none.outputs[0].as<float>(), ElementsAre(7));
    EXPECT_EQ(none.outputs[1].extents, Longs{0});
  }
}

// Exporters declare as scalars the loop-carried values that have shape [1] from the first iteration on.
TEST_F(Values, AnArrayOfOneElementIsTakenWhereAScalarIsDeclared) {
  GraphBuilder main, body;
  main.input("x", BP_DTYPE_FLOAT, {}).input("one", BP_DTYPE_FLOAT, {1}).input("rounds", BP_DTYPE_INT64, {});
  begin_body(body).input("value", BP_DTYPE_FLOAT, {}).capture("one", main);
  body.node("Add", 14, {"value", "one"}, {"next"}).type("next", BP_DTYPE_FLOAT, {1}).output("next");
  main.node("Loop", 25, {"rounds", "", "x"}, {"last"}, BP_DTYPE_FLOAT, {{"body", &body}}).output("last");
  const Outcome run = Compiled(plugin, main.graph()).run({floats({}, {7}), floats({1}, {1}), longs({}, {3})});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  EXPECT_THAT(run.outputs[0].as<float>(), ElementsAre(10));
}

TEST_F(Values, AnEndlessLoopEndsAtTheDeadline) {
  GraphBuilder main, body;
  main.input("x", BP_DTYPE_FLOAT, {1});
  begin_body(body).input("value", BP_DTYPE_FLOAT).node("Neg", 13, {"value"}, {"next"}).output("next");
  main.node("Loop", 25, {"", "", "x"}, {"last"}, BP_DTYPE_FLOAT, {{"body", &body}}).output("last");
  Compiled program(plugin, main.graph());
  auto soon = std::chrono::steady_clock::now().time_since_epoch() + std::chrono::milliseconds(50);
  auto deadline = std::chrono::duration_cast<std::chrono::nanoseconds>(soon).count();
  EXPECT_EQ(program.run({floats({1}, {7})}, static_cast<uint64_t>(deadline)).status, BP_TIMED_OUT);
}

// A sequence carried by a loop is modified in place. Copying it in each iteration would take minutes.
TEST_F(Values, ALongLoopFillsASequence) {
  constexpr int64_t kRounds = 20000;
  GraphBuilder main, body;
  main.input("rounds", BP_DTYPE_INT64, {});
  begin_body(body).input("list", BP_DTYPE_INT64).sequence("list", BP_DTYPE_INT64).sequence("next", BP_DTYPE_INT64);
  body.node("SequenceInsert", 11, {"list", "round"}, {"next"}).output("next");
  main.sequence("empty", BP_DTYPE_INT64).sequence("full", BP_DTYPE_INT64);
  main.node("SequenceEmpty", 11, {}, {"empty"}, BP_DTYPE_INT64, {{"dtype", int64_t{BP_DTYPE_INT64}}});
  main.node("Loop", 25, {"rounds", "", "empty"}, {"full"}, BP_DTYPE_INT64, {{"body", &body}});
  main.node("ConcatFromSequence", 11, {"full"}, {"all"}, BP_DTYPE_INT64,
            {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}});
  main.output("all");
  Compiled program(plugin, main.graph());
  Outcome run = program.run({longs({}, {kRounds})});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  Longs expected(kRounds);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(run.outputs[0].as<int64_t>(), expected);
}

TEST_F(Values, ScanWalksBackwardsAlongAnyAxis) {
  GraphBuilder main, body;
  main.input("zero", BP_DTYPE_FLOAT, {2}).input("x", BP_DTYPE_FLOAT, {2, 3});
  body.input("sum", BP_DTYPE_FLOAT, {2}).input("column", BP_DTYPE_FLOAT, {2});
  body.node("Add", 14, {"sum", "column"}, {"next"}).node("Identity", 25, {"next"}, {"seen"});
  body.output("next").output("seen");
  main.node("Scan", 25, {"zero", "x"}, {"total", "sums"}, BP_DTYPE_FLOAT,
            {{"body", &body},
             {"num_scan_inputs", int64_t{1}},
             {"scan_input_axes", Longs{-1}},
             {"scan_input_directions", Longs{1}},
             {"scan_output_axes", Longs{1}},
             {"scan_output_directions", Longs{1}}});
  main.output("total").output("sums");
  Compiled program(plugin, main.graph());
  Outcome run = program.run({floats({2}, {0, 0}), floats({2, 3}, {1, 2, 3, 10, 20, 30})});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  EXPECT_THAT(run.outputs[0].as<float>(), ElementsAre(6, 60));
  EXPECT_EQ(run.outputs[1].extents, (Longs{2, 3}));
  EXPECT_THAT(run.outputs[1].as<float>(), ElementsAre(6, 5, 3, 60, 50, 30));
}

TEST_F(Values, BytesThatAreNotUtf8KeepTheirCase) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_STRING, {-1});
  b.node("StringNormalizer", 10, {"x"}, {"y"}, BP_DTYPE_STRING, {{"case_change_action", std::string("UPPER")}});
  b.output("y");
  Compiled program(plugin, b.graph());
  // A continuation byte without a first byte; overlong forms of "a" (two bytes) and "é" (three); a truncated sequence.
  Outcome run = program.run({HostTensor::of_texts({4}, {"a\x80z", "\xc1\xa1", "\xe0\x83\xa9", "z\xc3"})});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  EXPECT_THAT(run.outputs[0].texts(), ElementsAre("A\x80Z", "\xc1\xa1", "\xe0\x83\xa9", "Z\xc3"));
}

TEST_F(Values, TextsGoThroughAChain) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_STRING, {-1})
      .weight_bytes("more", BP_DTYPE_STRING, {1}, HostTensor::of_texts({1}, {"é"}).bytes);
  b.weight<int64_t>("which", BP_DTYPE_INT64, {2}, {-1, 0});
  b.node("Concat", 13, {"x", "more"}, {"all"}, BP_DTYPE_STRING, {{"axis", int64_t{0}}});
  b.node("Gather", 13, {"all", "which"}, {"two"}, BP_DTYPE_STRING);
  b.node("StringNormalizer", 10, {"two"}, {"loud"}, BP_DTYPE_STRING, {{"case_change_action", std::string("UPPER")}});
  b.node("StringConcat", 20, {"loud", "more"}, {"long"}, BP_DTYPE_STRING);
  b.node("Equal", 19, {"all", "more"}, {"same"}, BP_DTYPE_BOOL).node("Shape", 25, {"all"}, {"shape"}, BP_DTYPE_INT64);
  b.output("long").output("same").output("shape");
  Compiled program(plugin, b.graph());
  Outcome run = program.run({HostTensor::of_texts({3}, {"one", "", "é"})});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  EXPECT_THAT(run.outputs[0].texts(), ElementsAre("Éé", "ONEé"));
  EXPECT_THAT(run.outputs[1].as<uint8_t>(), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(run.outputs[2].as<int64_t>(), ElementsAre(4));

  HostTensor broken = HostTensor::of_texts({2}, {"ab", "cd"});
  broken.bytes[8] = 99;  // the offset of string 1 is now after the end of the text
  Outcome refused = program.run({broken});
  EXPECT_EQ(refused.status, BP_INVALID_ARGUMENT);
  EXPECT_THAT(refused.text, HasSubstr("offsets"));
}

TEST_F(Values, ASequenceHoldsTensorsOfDifferentExtents) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {2}).input("y", BP_DTYPE_FLOAT, {2, 2}).input("at", BP_DTYPE_INT64, {});
  b.node("Neg", 13, {"x"}, {"minus"});  // "minus" lies in the arena, whose memory the run reuses
  b.sequence("pair", BP_DTYPE_FLOAT).sequence("three", BP_DTYPE_FLOAT).sequence("two", BP_DTYPE_FLOAT);
  b.node("SequenceConstruct", 11, {"minus", "y"}, {"pair"}).node("SequenceInsert", 11, {"pair", "x", "at"}, {"three"});
  b.node("SequenceErase", 11, {"three"}, {"two"}).node("SequenceAt", 11, {"two", "at"}, {"one"});
  b.node("SequenceLength", 11, {"two"}, {"length"}, BP_DTYPE_INT64)
      .node("SequenceLength", 11, {"pair"}, {"before"}, BP_DTYPE_INT64);
  b.output("one").output("length").output("before");
  Compiled program(plugin, b.graph());
  auto run = [&](int64_t at) {
    return program.run({floats({2}, {1, 2}), floats({2, 2}, {3, 4, 5, 6}), longs({}, {at})});
  };
  Outcome first = run(0);
  ASSERT_EQ(first.status, BP_OK) << first.text;
  EXPECT_THAT(first.outputs[0].as<float>(), ElementsAre(1, 2));
  EXPECT_THAT(first.outputs[1].as<int64_t>(), ElementsAre(2));
  EXPECT_THAT(first.outputs[2].as<int64_t>(), ElementsAre(2));
  EXPECT_THAT(run(-1).outputs[0].as<float>(), ElementsAre(1, 2));
  EXPECT_EQ(run(2).status, BP_INVALID_ARGUMENT) << "position 2 in a sequence of two";
  EXPECT_EQ(run(-3).status, BP_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace backplane::cpu::testing

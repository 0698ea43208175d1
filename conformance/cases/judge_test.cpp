// SPDX-License-Identifier: Apache-2.0
#include "judge/judge.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "cases/cases.h"

namespace backplane::conform {
namespace {

using ::testing::HasSubstr;

onnx::Tensor tensor(const std::vector<double>& values) {
  Array array(BP_DTYPE_FLOAT, {static_cast<int64_t>(values.size())});
  array.values = values;
  return to_tensor(array);
}
Reference expected(const std::vector<double>& values, Rule rule, std::vector<double> scale = {}) {
  Array array(BP_DTYPE_FLOAT, {static_cast<int64_t>(values.size())});
  array.values = values;
  Reference reference(std::move(array), rule);
  reference.scale = std::move(scale);
  return reference;
}
Judgement::Answer answer(const Reference& reference, const std::vector<double>& seen) {
  return judge(reference, tensor(seen), {}).answer;
}

constexpr double kUlp = 0x1p-23;  // one ULP at 1

TEST(Judge, CountsUlpsOfTheReference) {
  EXPECT_EQ(answer(expected({1}, Rule::within(2)), {1 + 2 * kUlp}), Judgement::kRight);
  EXPECT_EQ(answer(expected({1}, Rule::within(2)), {1 + 3 * kUlp}), Judgement::kWrong);
  EXPECT_EQ(answer(expected({1 + kUlp / 2}, Rule::within(0.5)), {1}), Judgement::kRight);
  EXPECT_EQ(answer(expected({1 + kUlp / 4}, Rule::within(0.5)), {1 + kUlp}), Judgement::kWrong);
  EXPECT_EQ(answer(expected({0}, Rule::within(1)), {-0.0}), Judgement::kRight);
}

TEST(Judge, ReportsTheWorstElementAsAFractionOfItsBound) {
  const Judgement seen = judge(expected({1, 8}, Rule::within(4)), tensor({1 + kUlp, 8 + 16 * kUlp}), {});
  EXPECT_EQ(seen.answer, Judgement::kRight);
  EXPECT_NEAR(seen.worst, 0.5, 1e-6);
}

TEST(Judge, MovedDataKeepsTheSignOfZero) {
  EXPECT_EQ(answer(expected({-0.0}, Rule::bits()), {0.0}), Judgement::kWrong);
  EXPECT_EQ(answer(expected({-0.0}, Rule::exact()), {0.0}), Judgement::kRight);
}

TEST(Judge, NanMatchesNanAlone) {
  for (const Rule rule : {Rule::bits(), Rule::within(1e30), Rule::smooth()}) {
    EXPECT_EQ(answer(expected({NAN}, rule), {NAN}), Judgement::kRight);
    EXPECT_EQ(answer(expected({NAN}, rule), {0}), Judgement::kWrong);
    EXPECT_EQ(answer(expected({1}, rule), {NAN}), Judgement::kWrong);
  }
}

// In a graph, the error of the node's inputs may change a comparison, but the result must still be a bool, not the
// poison of an unwritten output.
TEST(Judge, AnUncertainBoolIsStillTrueOrFalse) {
  Array array(BP_DTYPE_BOOL, {1});
  array.values = {1};
  Reference reference(array, Rule::exact());
  reference.scale = {INFINITY};
  onnx::Tensor seen = to_tensor(array);
  for (const int byte : {0, 1}) {
    seen.bytes[0] = static_cast<std::byte>(byte);
    EXPECT_EQ(judge(reference, seen, {}).answer, Judgement::kRight) << byte;
  }
  for (const int byte : {2, 0xA5, 0xFF}) {
    seen.bytes[0] = static_cast<std::byte>(byte);
    const Judgement judgement = judge(reference, seen, {});
    EXPECT_EQ(judgement.answer, Judgement::kWrong) << byte;
    EXPECT_THAT(judgement.reason, HasSubstr("expected true or false")) << byte;
  }
}

TEST(Judge, InfinityIsRightOnlyWhereTheResultOverflows) {
  EXPECT_EQ(answer(expected({1e39}, Rule::within(1)), {INFINITY}), Judgement::kRight);
  EXPECT_EQ(answer(expected({1e39}, Rule::within(1)), {-INFINITY}), Judgement::kWrong);
  EXPECT_EQ(answer(expected({1e37}, Rule::within(1)), {INFINITY}), Judgement::kWrong);
  EXPECT_EQ(answer(expected({INFINITY}, Rule::within(1)), {3e38}), Judgement::kWrong);
}

TEST(Judge, MistrustsZerosInsideTheBounds) {
  const Rule dot = Rule::of(Rule::kDot, 64);
  EXPECT_EQ(answer(expected({1e-7, 1e-7, 1e-7}, dot, {100, 100, 100}), {0, 0, 0}), Judgement::kMistrusted);
  EXPECT_EQ(answer(expected({1e-7, 1e-7, 1e-7}, dot, {100, 100, 100}), {1e-7, 1e-7, 0}), Judgement::kRight);
}

TEST(Judge, AcceptsFlushingOnlyIfTheDeviceReportsIt) {
  const Reference tiny = expected({1e-40, 1}, Rule::within(0.5));
  EXPECT_EQ(judge(tiny, tensor({0, 1}), {.flushes = true}).answer, Judgement::kRight);
  EXPECT_EQ(judge(tiny, tensor({0, 1}), {.flushes = false}).answer, Judgement::kWrong);
}

// On a device that rounds fp32 inputs to fp16, each error may be within its bound, but the sum of their squares is not.
TEST(Judge, FindsHalfPrecisionInADotProduct) {
  Problem problem;
  for (const OpCase& one : op_cases()) {
    Random random(1, one.name);
    if (one.name == "MatMul/float/block_around_zero") problem = one.make(random);
  }
  const std::vector<onnx::Tensor> honest = {to_tensor(reference(problem)[0].value)};
  EXPECT_EQ(judge_all(problem, reference(problem), honest, false).answer, Judgement::kRight);

  Problem half = problem;
  for (Argument& argument : half.arguments) {
    Array array = to_array(*argument.tensor);
    for (double& x : array.values) x = float_type(BP_DTYPE_FLOAT16).round(x);
    argument.tensor = to_tensor(array);
  }
  const Judgement seen = judge_all(problem, reference(problem), {to_tensor(reference(half)[0].value)}, false);
  EXPECT_EQ(seen.answer, Judgement::kWrong);
}

TEST(Judge, TheWorstOutputDecides) {
  const Rule dot = Rule::of(Rule::kDot, 64);
  const References right = {expected({1, 1, 1}, Rule::within(2)), expected({1e-7, 1e-7, 1e-7}, dot, {100, 100, 100})};
  const auto judged = [&](const std::vector<double>& first, const std::vector<double>& second, bool swapped) {
    References references = right;
    std::vector<onnx::Tensor> outputs = {tensor(first), tensor(second)};
    if (swapped) {
      std::swap(references[0], references[1]);
      std::swap(outputs[0], outputs[1]);
    }
    return judge_all({}, references, outputs, false);
  };
  const std::vector<double> ones(3, 1), close(3, 1.0005), zeros(3, 0), tiny(3, 1e-7), far(3, 1);
  for (const bool swapped : {false, true}) {
    EXPECT_EQ(judged(ones, tiny, swapped).answer, Judgement::kRight);
    EXPECT_EQ(judged(close, tiny, swapped).answer, Judgement::kWrong);
    EXPECT_TRUE(judged(close, tiny, swapped).close);
    const Judgement seen = judged(close, far, swapped);
    EXPECT_EQ(seen.answer, Judgement::kWrong);
    EXPECT_FALSE(seen.close);
    EXPECT_THAT(seen.reason, HasSubstr("expected 1e-07"));
    EXPECT_EQ(judged(ones, zeros, swapped).answer, Judgement::kMistrusted);
    EXPECT_EQ(judged(close, zeros, swapped).answer, Judgement::kMistrusted);
    EXPECT_EQ(judged(zeros, zeros, swapped).answer, Judgement::kWrong);
    EXPECT_FALSE(judged(zeros, zeros, swapped).close);
  }
}

TEST(Judge, FindsRoundingToOneSide) {
  const std::vector<double> zeros(4000, 1.0), scale(4000, 1.0);
  Reference dot = expected(zeros, Rule::of(Rule::kDot, 2), scale);
  const std::vector<double> up(4000, 1 + kUlp);
  EXPECT_EQ(judge(dot, tensor(zeros), {.drawn_around_zero = true}).answer, Judgement::kRight);
  dot.rule.terms = 64;
  EXPECT_EQ(judge(dot, tensor(up), {.drawn_around_zero = false}).answer, Judgement::kRight);
  EXPECT_THAT(judge(dot, tensor(up), {.drawn_around_zero = true}).reason, HasSubstr("biased"));
}

TEST(FloatType, RoundsToNearestEven) {
  const FloatType& half = float_type(BP_DTYPE_FLOAT16);
  EXPECT_EQ(half.round(2049), 2048);
  EXPECT_EQ(half.round(2051), 2052);
  EXPECT_EQ(half.round(65519), 65504);
  EXPECT_EQ(half.round(65520), INFINITY);
  EXPECT_EQ(encode16(half, 1), 0x3C00);
  EXPECT_EQ(encode16(half, -0x1p-24), 0x8001);
  EXPECT_EQ(encode16(float_type(BP_DTYPE_BFLOAT16), 3.0), 0x4040);
}

// The node of a case as a plugin that knows `opset` sees it; nullopt if no form in that opset allows it.
std::optional<NodeSpec> node_of(std::string_view name, uint32_t opset) {
  for (const OpCase& one : op_cases()) {
    if (one.name != name) continue;
    Random random(1, one.name);
    const Problem problem = one.make(random);
    const std::optional<GraphSpec> graph = graph_of(problem, reference(problem), opset);
    return graph ? std::optional(graph->nodes.at(0)) : std::nullopt;
  }
  throw std::invalid_argument("there is no case " + std::string(name));
}

TEST(Cases, AreAskedInFormsThatAllowThem) {
  for (const auto& [name, since] :
       {std::pair("Mod/float/signs_fmod0", 28u), std::pair("BitShift/int8/LEFT_beyond", 28u),
        std::pair("Celu/float16/odd", 28u), std::pair("Celu/bfloat16/odd", 28u),
        std::pair("Compress/bfloat16/flat", 28u), std::pair("SpaceToDepth/float/crd_channels", 28u),
        std::pair("SwiGLU/float/odd", 28u), std::pair("Attention/float/window", 25u)}) {
    EXPECT_FALSE(node_of(name, since - 1)) << name;
    ASSERT_TRUE(node_of(name, since)) << name;
    EXPECT_EQ(node_of(name, since)->since_version, since) << name;
  }
  EXPECT_EQ(node_of("Mod/int32/same", 27)->since_version, 13u);
  EXPECT_EQ(node_of("Celu/float/odd", 27)->since_version, 12u);
}

TEST(Cases, HaveTheAttributesOfTheirForm) {
  const auto has = [](std::string_view name, uint32_t opset, std::string_view attribute) {
    const Attributes attributes = node_of(name, opset).value().attributes;
    return std::any_of(attributes.begin(), attributes.end(), [&](const Attribute& a) { return a.name == attribute; });
  };
  EXPECT_FALSE(has("SpaceToDepth/float/two", 27, "mode"));
  EXPECT_TRUE(has("SpaceToDepth/float/two", 28, "mode"));
  EXPECT_FALSE(has("Attention/float/plain", 24, "left_window_size"));
  EXPECT_TRUE(has("Attention/float/plain", 25, "left_window_size"));
  EXPECT_FALSE(has("Cast/float/to_6", 23, "round_mode"));
  EXPECT_TRUE(has("Cast/float/to_6", 23, "saturate"));
  EXPECT_FALSE(has("Cast/float/to_6", 18, "saturate"));
}

TEST(Cases, NameAnOperatorByItsDomainWhereOnnxHasItsType) {
  for (const auto& [name, domain] :
       {std::pair{"Gelu/float/block", ""}, {"com.microsoft.Gelu/float/plain", "com.microsoft"}}) {
    const NodeSpec node = node_of(name, 27).value();
    EXPECT_EQ(node.op_type, "Gelu");
    EXPECT_EQ(node.domain, domain);
  }
}

TEST(Cases, OmitOutputs) {
  const NodeSpec node = node_of("SkipLayerNormalization/float/sums", 27).value();
  ASSERT_EQ(node.outputs.size(), 4u);
  for (const size_t slot : {1, 2}) EXPECT_EQ(node.outputs[slot], BP_NONE);
  for (const size_t slot : {0, 3}) EXPECT_NE(node.outputs[slot], BP_NONE);
}

TEST(Cases, EveryOperatorOfTheOracleHasThem) {
  for (const Operator* op : all_operators()) EXPECT_NO_THROW(plain_case(op->name)) << op->name;
}

}  // namespace
}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// Compares fast implementations of operators with those of reference mode, on one, two and three threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing::reference {
namespace {

using Extents = std::vector<int64_t>;

HostTensor noise(const Extents& extents, uint32_t seed, float size = 1) {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  std::vector<float> data(static_cast<size_t>(count));
  for (float& x : data) {
    seed = seed * 1664525u + 1013904223u;
    x = size * (static_cast<float>(seed >> 8) / 8388608.0f - 1);
  }
  return HostTensor::of(BP_DTYPE_FLOAT, extents, data);
}

// A node with its inputs, some of which are weights (`known`).
struct Case {
  std::string name, op_type;
  uint32_t since_version;
  std::vector<HostTensor> inputs;  // an input without bytes is omitted
  std::vector<bool> known;
  size_t outputs;
  Attributes attributes;
};

void PrintTo(const Case& test, std::ostream* stream) {
  *stream << test.name;
}

Outcome run(const Case& test, bool reference, const char* threads) {
  setenv("BACKPLANE_CPU_REFERENCE", reference ? "1" : "0", 1);
  Plugin plugin(threads);
  GraphBuilder graph;
  std::vector<std::string> names, results;
  std::vector<HostTensor> given;
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    const HostTensor& input = test.inputs[i];
    names.push_back(input.bytes.empty() ? "" : "x" + std::to_string(i));
    if (input.bytes.empty()) continue;
    if (i < test.known.size() && test.known[i]) {
      graph.weight_bytes(names.back(), input.dtype, input.extents, input.bytes);
    } else {
      graph.input(names.back(), input.dtype, input.extents);
      given.push_back(input);
    }
  }
  for (size_t o = 0; o < test.outputs; ++o) results.push_back("y" + std::to_string(o));
  graph.node(test.op_type, test.since_version, names, results, BP_DTYPE_FLOAT, test.attributes);
  for (const std::string& result : results) graph.output(result);
  return Compiled(plugin, graph.graph()).run(given);
}

struct Sizes {
  int64_t times, batch, input, hidden;
};

// The weights are so small that gates do not saturate. `more`: adds sequence lengths, initial states and, for an LSTM,
// peepholes.
Case recurrent(const std::string& name, const std::string& op_type, Sizes s, bool known, bool more,
               Attributes attributes) {
  const int64_t gates = op_type == "LSTM" ? 4 : op_type == "GRU" ? 3 : 1;
  const int64_t d =
      attributes.contains("direction") && std::get<std::string>(attributes["direction"])[0] == 'b' ? 2 : 1;
  const auto size = 1 / std::sqrt(static_cast<float>(s.hidden));
  Case test{name, op_type, 22, {}, {false, known, known, known}, op_type == "LSTM" ? 3u : 2u, std::move(attributes)};
  test.inputs = {noise({s.times, s.batch, s.input}, 1), noise({d, gates * s.hidden, s.input}, 2),
                 noise({d, gates * s.hidden, s.hidden}, 3, size), noise({d, 2 * gates * s.hidden}, 4)};
  test.attributes["hidden_size"] = s.hidden;
  if (!more) return test;
  std::vector<int32_t> lengths;
  for (int64_t b = 0; b < s.batch; ++b) lengths.push_back(static_cast<int32_t>((b * 5 + s.times) % (s.times + 1)));
  test.inputs.push_back(HostTensor::of(BP_DTYPE_INT32, {s.batch}, lengths));
  test.inputs.push_back(noise({d, s.batch, s.hidden}, 5));
  if (op_type != "LSTM") return test;
  test.inputs.push_back(noise({d, s.batch, s.hidden}, 6));
  test.inputs.push_back(noise({d, 3 * s.hidden}, 7));
  return test;
}

Case einsum(const std::string& name, const std::string& equation, const std::vector<Extents>& operands) {
  Case test{name, "Einsum", 12, {}, {}, 1, {{"equation", equation}}};
  for (const Extents& extents : operands)
    test.inputs.push_back(noise(extents, static_cast<uint32_t>(test.inputs.size() + 1)));
  return test;
}

std::vector<Case> cases() {
  const Attributes both{{"direction", "bidirectional"}}, back{{"direction", "reverse"}}, none;
  const Attributes linear{{"linear_before_reset", int64_t{1}}}, forgets{{"input_forget", int64_t{1}}, {"clip", 0.5f}};
  return {
      recurrent("Lstm", "LSTM", {9, 3, 20, 37}, true, false, none),
      recurrent("LstmBothWaysOfEverything", "LSTM", {7, 5, 3, 20}, false, true, both),
      recurrent("LstmWithManyTimesAhead", "LSTM", {70, 1, 8, 300}, true, false, back),
      recurrent("LstmThatForgetsByItsInput", "LSTM", {6, 4, 5, 16}, true, true, forgets),
      recurrent("Gru", "GRU", {9, 6, 20, 33}, true, true, both),
      recurrent("GruLinearBeforeReset", "GRU", {9, 6, 20, 33}, false, true, linear),
      recurrent("GruOfOneLongSequence", "GRU", {40, 1, 16, 256}, true, false, none),
      recurrent("Rnn", "RNN", {12, 7, 5, 48}, true, true, both),
      einsum("TransposedProducts", "bij,bkj->bik", {{3, 20, 16}, {3, 24, 16}}),
      einsum("AttentionScores", "bqhd,bkhd->bhqk", {{2, 10, 3, 16}, {2, 12, 3, 16}}),
      einsum("ResultInAnotherOrder", "abk,kcd->cadb", {{5, 6, 32}, {32, 7, 4}}),
      einsum("OperandsThatAreNoMatrices", "ajbk,kcj->abc", {{5, 8, 6, 9}, {9, 7, 8}}),
      einsum("TransposedResult", "ik,kj->ji", {{30, 20}, {20, 40}}),
      einsum("ElementByElement", "ab,ab->ba", {{70, 90}, {70, 90}}),
      einsum("Outer", "a,b,c->abc", {{8}, {9}, {10}}),
      einsum("SumsFirst", "abx,ybc->ac", {{9, 30, 8}, {6, 30, 10}}),
      einsum("SumOfAll", "abc->", {{20, 30, 40}}),
      einsum("SumOverTheFirst", "ab->b", {{50, 70}}),
      einsum("DiagonalTimesMatrix", "iik,kj->ij", {{12, 12, 30}, {30, 8}}),
      einsum("Diagonal", "iji->ji", {{12, 9, 12}}),
      einsum("ThreeInARow", "ab,bc,cd->ad", {{20, 30}, {30, 10}, {10, 25}}),
      einsum("Broadcast", "...ij,...jk->...ik", {{4, 1, 10, 12}, {3, 12, 14}}),
      einsum("DotOfEachRow", "ab,ab->a", {{30, 200}, {30, 200}}),
      einsum("ScalarTimesAll", "ab,->ba", {{17, 40}, {}}),
  };
}

class FastOperator : public ::testing::TestWithParam<Case> {};

TEST_P(FastOperator, MatchesItsDefinition) {
  const Outcome expected = run(GetParam(), true, "1");
  ASSERT_EQ(expected.status, BP_OK) << expected.text;
  for (const char* threads : {"1", "2", "3"}) {
    const Outcome seen = run(GetParam(), false, threads);
    ASSERT_EQ(seen.status, BP_OK) << seen.text;
    ASSERT_EQ(seen.outputs.size(), expected.outputs.size());
    for (size_t o = 0; o < seen.outputs.size(); ++o) {
      ASSERT_EQ(seen.outputs[o].extents, expected.outputs[o].extents);
      const std::vector<float> a = seen.outputs[o].as<float>(), b = expected.outputs[o].as<float>();
      float largest = 0;
      for (float value : b) largest = std::max(largest, std::fabs(value));
      ASSERT_GT(largest, 0);
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], 2e-5f * largest) << "output " << o << " [" << i << "], threads " << threads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, FastOperator, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace backplane::cpu::testing::reference

// SPDX-License-Identifier: Apache-2.0
// Sizes computed from a model are refused if they overflow or exceed the budget.
#include "runtime/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>

#include "backplane/sdk/fence.hpp"
#include "runtime/memory.h"
#include "runtime/thread_state.h"
#include "runtime/value.h"
#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Sizes, AreRefusedWhereTheyWouldWrap) {
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ(product({large, large, 0}), 0);
  EXPECT_EQ(product({large, 1 << 20}), int64_t{1} << 60);
  EXPECT_THROW(product({large, large}), sdk::Error);
  EXPECT_THROW(static_cast<void>((Shape{large, large}.elements())), sdk::Error);
  EXPECT_EQ((Shape{large, large, 0}.elements()), 0);
  EXPECT_THROW(bytes_of(BP_DTYPE_DOUBLE, INT64_MAX), sdk::Error);
  EXPECT_THROW(bytes_of(BP_DTYPE_DOUBLE, -1), sdk::Error);
  EXPECT_THROW(Value::allocate(BP_DTYPE_FLOAT, Shape{large, large}), sdk::Error);
  EXPECT_TRUE(countable(Shape{1 << 29, 1 << 29, 0}));
  EXPECT_FALSE(countable(Shape{large, large, 0}));
  EXPECT_FALSE(countable(Shape{-1}));
}

TEST(Budget, CountsBlocksUntilTheyAreFreed) {
  Budget budget(1 << 20);
  const UseBudget use(&budget);
  {
    const Block small = allocate(1000), large = allocate_pages(600 << 10);
    EXPECT_GE(budget.used(), 600 << 10);
    EXPECT_THROW(allocate(600 << 10), sdk::Error);
    EXPECT_THROW(allocate_pages(600 << 10), sdk::Error);
    EXPECT_THROW(require_memory(600, 1 << 10), sdk::Error);
    EXPECT_THROW(require_memory(INT64_MAX, 8), sdk::Error);
  }
  EXPECT_EQ(budget.used(), 0);
  const Block again = allocate(900 << 10);
}

using Reals = std::vector<float>;

// Returns the resident memory of this process, in MiB.
double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

class Limited : public ::testing::Test {
 protected:
  Plugin plugin{"1", {{"max_bytes", std::to_string(64 << 20)}}};

  Outcome run(GraphBuilder& b, const std::vector<HostTensor>& inputs = {}) {
    return Compiled(plugin, b.graph()).run(inputs);
  }
};

TEST_F(Limited, NamesTheNodeAndTheLimit) {
  GraphBuilder b;
  b.input("shape", BP_DTYPE_INT64, {2}).node("ConstantOfShape", 9, {"shape"}, {"y"}).output("y");
  const auto shape = [](int64_t a, int64_t c) { return HostTensor::of<int64_t>(BP_DTYPE_INT64, {2}, {a, c}); };
  EXPECT_EQ(run(b, {shape(100, 100)}).status, BP_OK);
  for (const auto& [a, c] : {std::pair<int64_t, int64_t>{5000, 5000}, {int64_t{1} << 40, int64_t{1} << 40}}) {
    const Outcome refused = run(b, {shape(a, c)});
    EXPECT_NE(refused.status, BP_OK);
    EXPECT_THAT(refused.text, HasSubstr("ConstantOfShape"));
  }
  EXPECT_EQ(run(b, {shape(5000, 5000)}).status, BP_RESOURCE_EXHAUSTED);
  EXPECT_THAT(run(b, {shape(5000, 5000)}).text, AllOf(HasSubstr("67108864"), HasSubstr("max_bytes")));
}

TEST_F(Limited, RefusesValuesOfOperatorsThatRunAsAWhole) {
  GraphBuilder b;  // the result has four rows of 2^31 columns
  b.input("x", BP_DTYPE_INT64, {4, 1})
      .node("TfIdfVectorizer", 9, {"x"}, {"y"}, BP_DTYPE_FLOAT,
            {{"mode", "TF"},
             {"min_gram_length", int64_t{1}},
             {"max_gram_length", int64_t{1}},
             {"max_skip_count", int64_t{0}},
             {"ngram_counts", std::vector<int64_t>{0}},
             {"ngram_indexes", std::vector<int64_t>{INT32_MAX}},
             {"pool_int64s", std::vector<int64_t>{1}}});
  b.output("y");
  const Outcome refused = run(b, {HostTensor::of<int64_t>(BP_DTYPE_INT64, {4, 1}, {1, 2, 3, 4})});
  EXPECT_EQ(refused.status, BP_RESOURCE_EXHAUSTED) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("TfIdfVectorizer"));
}

// The long string is repeated for each of 4096 short ones.
TEST_F(Limited, RefusesRepeatedStringsBeyondIt) {
  for (const bool swapped : {false, true}) {
    GraphBuilder b;
    b.input("long", BP_DTYPE_STRING, {1}).input("many", BP_DTYPE_STRING, {4096});
    b.node("StringConcat", 20, {swapped ? "many" : "long", swapped ? "long" : "many"}, {"y"}, BP_DTYPE_STRING);
    b.output("y");
    const auto joined = [&](size_t length) {
      return run(b, {HostTensor::of_texts({1}, {std::string(length, 'a')}),
                     HostTensor::of_texts({4096}, std::vector<std::string>(4096, "b"))});
    };
    const Outcome refused = joined(64 << 10);  // 256 MiB
    EXPECT_EQ(refused.status, BP_RESOURCE_EXHAUSTED) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr(std::to_string(4096 * ((64 << 10) + 2 * sizeof(int64_t)))));
    const Outcome fits = joined(1 << 10);
    ASSERT_EQ(fits.status, BP_OK) << fits.text;
    EXPECT_EQ(fits.outputs[0].texts()[4095],
              swapped ? "b" + std::string(1 << 10, 'a') : std::string(1 << 10, 'a') + "b");
  }
}

// Pieces of a string are counted while it is split, not only once all of them are known.
TEST_F(Limited, RefusesPiecesBeyondIt) {
  GraphBuilder at_commas, at_blanks;
  at_commas.input("x", BP_DTYPE_STRING, {1}).type_of_unknown_rank("n", BP_DTYPE_INT64);
  at_commas.node("StringSplit", 20, {"x"}, {"y", "n"}, BP_DTYPE_STRING, {{"delimiter", ","}}).output("y").output("n");
  at_blanks.input("x", BP_DTYPE_STRING, {1}).type_of_unknown_rank("n", BP_DTYPE_INT64);
  at_blanks.node("StringSplit", 20, {"x"}, {"y", "n"}, BP_DTYPE_STRING).output("y").output("n");
  std::string blanks;
  for (int i = 0; i < 4 << 20; ++i) blanks += "a ";
  for (const Outcome& refused : {run(at_commas, {HostTensor::of_texts({1}, {std::string(16 << 20, ',')})}),
                                 run(at_blanks, {HostTensor::of_texts({1}, {blanks})})}) {
    EXPECT_EQ(refused.status, BP_RESOURCE_EXHAUSTED) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr(std::to_string(16 * ((4 << 20) + 1))));  // as the list grows to 4 Mi pieces
  }
  const Outcome fits = run(at_commas, {HostTensor::of_texts({1}, {"a,,b"})});
  ASSERT_EQ(fits.status, BP_OK) << fits.text;
  EXPECT_EQ(fits.outputs[0].texts(), (std::vector<std::string>{"a", "", "b"}));
}

TEST_F(Limited, RefusesScoresBeyondIt) {
  GraphBuilder b;
  b.input("q", BP_DTYPE_FLOAT, {1, 1, 1 << 20, 1}).input("k", BP_DTYPE_FLOAT, {1, 1, 1 << 20, 1});
  b.node("ai.onnx.preview::FlexAttention", 1, {"q", "k", "k"}, {"y"}).output("y");
  const std::vector<float> zeros(1 << 20);
  const HostTensor x = HostTensor::of(BP_DTYPE_FLOAT, {1, 1, 1 << 20, 1}, zeros);
  const Outcome refused = run(b, {x, x});
  EXPECT_EQ(refused.status, BP_RESOURCE_EXHAUSTED) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("FlexAttention"));
}

// The indices that these operators collect during planning count against the budget, even before results are allocated.
TEST_F(Limited, RefusesIndicesBeyondIt) {
  const std::vector<uint8_t> ones(12 << 20, 1);  // 96 MiB of indices
  GraphBuilder non_zero;
  non_zero.input("x", BP_DTYPE_UINT8, {12 << 20}).node("NonZero", 13, {"x"}, {"y"}, BP_DTYPE_INT64).output("y");
  GraphBuilder compress;
  compress.input("x", BP_DTYPE_UINT8, {12 << 20}).input("c", BP_DTYPE_BOOL, {12 << 20});
  compress.node("Compress", 11, {"x", "c"}, {"y"}, BP_DTYPE_UINT8).output("y");
  const HostTensor x = HostTensor::of(BP_DTYPE_UINT8, {12 << 20}, ones);
  const HostTensor chosen = HostTensor::of(BP_DTYPE_BOOL, {12 << 20}, ones);
  for (const Outcome& refused : {run(non_zero, {x}), run(compress, {x, chosen})}) {
    EXPECT_EQ(refused.status, BP_RESOURCE_EXHAUSTED) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr(std::to_string(8 * ones.size())));
  }
}

// Memory that an operator needs in addition to its result counts too. Here it is larger than the result.
TEST_F(Limited, RefusesSumsBeyondIt) {
  GraphBuilder trees;  // the scores of a row take six times the memory of its results
  trees.input("x", BP_DTYPE_FLOAT, {1, 1});
  trees.node("ai.onnx.ml::TreeEnsembleRegressor", 3, {"x"}, {"y"}, BP_DTYPE_FLOAT, {{"n_targets", int64_t{8 << 20}}});
  trees.output("y");
  GraphBuilder image;  // the sums take eight times the memory of the image
  image.input("x", BP_DTYPE_INT8, {1, 1, 9000000});
  image.weight<int64_t>("extents", BP_DTYPE_INT64, {2}, {3000, 3000});
  image.weight<int64_t>("block", BP_DTYPE_INT64, {2}, {1, 1});
  image.node("Col2Im", 18, {"x", "extents", "block"}, {"y"}, BP_DTYPE_INT8).output("y");
  for (const Outcome& refused :
       {run(trees, {HostTensor::of<float>(BP_DTYPE_FLOAT, {1, 1}, {1})}),
        run(image, {HostTensor::of(BP_DTYPE_INT8, {1, 1, 9000000}, std::vector<int8_t>(9000000))})}) {
    EXPECT_EQ(refused.status, BP_RESOURCE_EXHAUSTED) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr("max_bytes"));
  }
}

TEST_F(Limited, RefusesTargetsWhoseCoefficientsWouldWrap) {
  GraphBuilder b;  // 2^62 targets of 4 numbers have 2^64 coefficients
  b.input("x", BP_DTYPE_FLOAT, {1, 4});
  b.node("ai.onnx.ml::LinearRegressor", 1, {"x"}, {"y"}, BP_DTYPE_FLOAT, {{"targets", int64_t{1} << 62}}).output("y");
  const Outcome refused = run(b, {HostTensor::of<float>(BP_DTYPE_FLOAT, {1, 4}, {1, 2, 3, 4})});
  EXPECT_EQ(refused.status, BP_RESOURCE_EXHAUSTED) << refused.text;
}

// A window may have more positions than fit in memory: only those inside the input are read.
TEST_F(Limited, WindowsOfPoolsMayExceedTheTensor) {
  const std::vector<int64_t> kernel(2, 1 << 30), pads(4, 1 << 29);
  for (const int64_t channels : {3, 32}) {  // the convolution's output is blocked if its channels fill whole blocks
    std::vector<float> identity(static_cast<size_t>(channels * channels)), planes;
    for (int64_t c = 0; c < channels; ++c) identity[static_cast<size_t>(c * channels + c)] = 1;
    for (int64_t c = 0; c < channels; ++c) planes.insert(planes.end(), {1, 2, 3, 4});
    for (const bool is_maximum : {false, true}) {
      GraphBuilder b;
      b.input("x", BP_DTYPE_FLOAT, {1, channels, 2, 2});
      b.weight("w", BP_DTYPE_FLOAT, {channels, channels, 1, 1}, identity).node("Conv", 11, {"x", "w"}, {"c"});
      b.node(is_maximum ? "MaxPool" : "AveragePool", 22, {"c"}, {"y"}, BP_DTYPE_FLOAT,
             {{"kernel_shape", kernel}, {"pads", pads}});
      b.output("y");
      const Outcome result = run(b, {HostTensor::of(BP_DTYPE_FLOAT, {1, channels, 2, 2}, planes)});
      ASSERT_EQ(result.status, BP_OK) << result.text;
      EXPECT_EQ(result.outputs[0].extents, (std::vector<int64_t>{1, channels, 3, 3}));
      for (float y : result.outputs[0].as<float>()) EXPECT_EQ(y, is_maximum ? 4.0f : 2.5f);
    }
  }
}

// Any positive `size` of an LRN is valid. A window larger than the number of channels costs no more memory or time than
// one of all channels.
TEST_F(Limited, WindowsOfChannelsMayExceedTheTensor) {
  for (const int64_t channels : {3, 32}) {  // the convolution's output is blocked if its channels fill whole blocks
    std::vector<float> identity(static_cast<size_t>(channels * channels));
    for (int64_t c = 0; c < channels; ++c) identity[static_cast<size_t>(c * channels + c)] = 1;
    const std::vector<int64_t> extents{1, channels, 8, 8};
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, extents).weight("w", BP_DTYPE_FLOAT, {channels, channels, 1, 1}, identity);
    b.node("Conv", 11, {"x", "w"}, {"c"});
    b.node("LRN", 13, {"c"}, {"y"}, BP_DTYPE_FLOAT, {{"size", INT64_MAX}}).output("y");
    const std::vector<float> twos(static_cast<size_t>(64 * channels), 2.0f);
    const Outcome result = run(b, {HostTensor::of(BP_DTYPE_FLOAT, extents, twos)});
    ASSERT_EQ(result.status, BP_OK) << result.text;
    for (float y : result.outputs[0].as<float>()) EXPECT_FLOAT_EQ(y, 2.0f);  // alpha / size is almost 0
  }
}

// Indices, taps and twiddles may take much more memory than the model and its tensors. The tables of these models need
// more than the limit (runtime/tables.h), so the run computes their entries as it goes.
class Tables : public Limited {
 protected:
  static constexpr int64_t kMany = 6'000'000;

  std::vector<float> run_in_budget(GraphBuilder& b, const std::vector<HostTensor>& inputs) {
    Compiled program(plugin, b.graph());
    EXPECT_EQ(program.status, BP_OK) << program.text;
    if (program.status != BP_OK) return {};
    const Outcome result = program.run(inputs);
    EXPECT_EQ(result.status, BP_OK) << result.text;
    return result.outputs.empty() ? std::vector<float>() : result.outputs[0].as<float>();
  }
  const HostTensor three = HostTensor::of<float>(BP_DTYPE_FLOAT, {3}, {1, 2, 3});
};

TEST_F(Tables, AreNotNeededToPad) {
  for (const auto& [mode, expected] : {std::pair<std::string, Reals>{"wrap", {1, 2, 3, 1, 2, 3, 1}},
                                       {"reflect", {1, 2, 3, 2, 1, 2, 3}},
                                       {"edge", {1, 2, 3, 3, 3, 3, 3}},
                                       {"constant", {1, 2, 3, 0, 0, 0, 0}}}) {
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, {3}).weight<int64_t>("pads", BP_DTYPE_INT64, {2}, {0, kMany});
    b.node("Pad", 25, {"x", "pads"}, {"y"}, BP_DTYPE_FLOAT, {{"mode", mode}}).output("y");
    const Reals y = run_in_budget(b, {three});
    ASSERT_EQ(y.size(), 3 + kMany) << mode;
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t period = mode == "wrap" ? 3 : mode == "reflect" ? 4 : y.size();
      const float wanted = i < expected.size() ? expected[i] : period < y.size() ? y[i - period] : expected.back();
      ASSERT_EQ(y[i], wanted) << mode << " at " << i;
    }
  }
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {3}).weight<int64_t>("extents", BP_DTYPE_INT64, {1}, {kMany + 1});
  b.node("CenterCropPad", 18, {"x", "extents"}, {"y"}).output("y");
  const Reals y = run_in_budget(b, {three});
  ASSERT_EQ(y.size(), kMany + 1);
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(y[i], i >= kMany / 2 - 1 && i < kMany / 2 + 2 ? i - kMany / 2 + 2 : 0);
}

// The result has many rows, and its last axis is short.
TEST_F(Tables, AreNotNeededToPadRows) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {2, 2}).weight<int64_t>("pads", BP_DTYPE_INT64, {4}, {0, 1, 5'000'000, 0});
  b.node("Pad", 25, {"x", "pads"}, {"y"}, BP_DTYPE_FLOAT, {{"mode", "edge"}}).output("y");
  const Reals y = run_in_budget(b, {HostTensor::of<float>(BP_DTYPE_FLOAT, {2, 2}, {1, 2, 3, 4})});
  ASSERT_EQ(y.size(), 3 * 5'000'002);
  for (size_t i = 0; i < y.size(); i += 3) {
    ASSERT_EQ(y[i], i == 0 ? 1 : 3) << i;
    ASSERT_EQ(y[i + 1], y[i]) << i;
    ASSERT_EQ(y[i + 2], y[i] + 1) << i;
  }
}

TEST_F(Tables, AreNotNeededToResize) {
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, {3}).weight<int64_t>("extents", BP_DTYPE_INT64, {1}, {kMany});
    b.node("Resize", 19, {"x", "", "", "extents"}, {"y"}, BP_DTYPE_FLOAT, {{"mode", mode}}).output("y");
    const Reals y = run_in_budget(b, {three});
    ASSERT_EQ(y.size(), kMany) << mode;
    for (size_t i = 0; i < y.size(); ++i) {
      const double x = (static_cast<double>(i) + 0.5) * 3 / kMany - 0.5;
      if (mode == "nearest") {
        ASSERT_EQ(y[i], std::clamp(std::ceil(x - 0.5), 0.0, 2.0) + 1) << i;
      } else if (mode == "linear") {
        ASSERT_NEAR(y[i], std::clamp(x, 0.0, 2.0) + 1, 1e-5) << i;
      }
    }
    EXPECT_NEAR(y[kMany / 2], 2, 1e-5) << mode;
  }
  for (const std::string mode : {"linear", "cubic"}) {
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, {kMany}).weight<int64_t>("extents", BP_DTYPE_INT64, {1}, {3});
    b.node("Resize", 19, {"x", "", "", "extents"}, {"y"}, BP_DTYPE_FLOAT, {{"mode", mode}, {"antialias", int64_t{1}}});
    b.output("y");
    const Reals y = run_in_budget(b, {HostTensor::of(BP_DTYPE_FLOAT, {kMany}, Reals(kMany, 2.0f))});
    ASSERT_EQ(y.size(), 3u) << mode;
    for (const float value : y) EXPECT_NEAR(value, 2, 1e-5) << mode;
  }
}

// A few nodes may take the memory for tables; the others compute what they need.
TEST_F(Tables, AreLimitedForAllNodesTogether) {
  constexpr int kNodes = 24;
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {3}).weight<int64_t>("extents", BP_DTYPE_INT64, {1}, {400'000});
  for (int i = 0; i < kNodes; ++i) {
    const std::string number = std::to_string(i);
    b.node("Resize", 19, {"x", "", "", "extents"}, {"y" + number}, BP_DTYPE_FLOAT, {{"mode", "cubic"}});
    b.node("ReduceSum", 13, {"y" + number}, {"z" + number}).output("z" + number);
  }
  const double before = resident_megabytes();
  Compiled program(plugin, b.graph());
  ASSERT_EQ(program.status, BP_OK) << program.text;
  EXPECT_LT(resident_megabytes() - before, 150);  // all tables would take 24 · 19 MB
  const Outcome sums = program.run({three});
  ASSERT_EQ(sums.status, BP_OK) << sums.text;
  for (const HostTensor& sum : sums.outputs) EXPECT_NEAR(sum.as<float>()[0], 800'000, 800);
}

TEST_F(Tables, AreNotNeededForBatches) {
  constexpr int64_t kBatch = 1'700'000;  // outer: each matrix of b is used for five of a
  GraphBuilder b;
  b.input("a", BP_DTYPE_FLOAT, {kBatch, 5, 1, 1}).input("b", BP_DTYPE_FLOAT, {kBatch, 1, 1, 1});
  b.node("MatMul", 13, {"a", "b"}, {"y"}).output("y");
  Reals left(5 * kBatch), right(kBatch);
  for (size_t i = 0; i < left.size(); ++i) left[i] = static_cast<float>(i % 1000);
  for (size_t i = 0; i < right.size(); ++i) right[i] = static_cast<float>(i % 77);
  const Reals y = run_in_budget(b, {HostTensor::of(BP_DTYPE_FLOAT, {kBatch, 5, 1, 1}, left),
                                    HostTensor::of(BP_DTYPE_FLOAT, {kBatch, 1, 1, 1}, right)});
  ASSERT_EQ(y.size(), left.size());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], left[i] * right[i / 5]) << i;
}

TEST(Planning, BuildsNoTablesOfLongTransforms) {
  for (const std::string op : {"DFT", "STFT"}) {
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, {1, op == "DFT" ? 4 : 30'000'001, 1});
    b.weight<int64_t>("length", BP_DTYPE_INT64, {}, {30'000'001});
    if (op == "DFT")
      b.node("DFT", 20, {"x", "length"}, {"y"}).output("y");
    else
      b.node("STFT", 17, {"x", "length", "", "length"}, {"y"}).output("y");
    Plugin plugin("1");
    timespec begin{}, end{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    const double before = resident_megabytes();
    const Compiled program(plugin, b.graph());
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    EXPECT_EQ(program.status, BP_OK) << program.text;
    EXPECT_LT(end.tv_sec - begin.tv_sec, 2) << op;
    EXPECT_LT(resident_megabytes() - before, 300) << op;
  }
}

TEST(Windows, OfNegativeSizeAreRefused) {
  Plugin plugin("1");
  GraphBuilder b;
  b.input("n", BP_DTYPE_INT64, {}).node("HannWindow", 17, {"n"}, {"y"}, BP_DTYPE_FLOAT).output("y");
  const Outcome refused = Compiled(plugin, b.graph()).run({HostTensor::of<int64_t>(BP_DTYPE_INT64, {}, {-3})});
  EXPECT_NE(refused.status, BP_OK);
  EXPECT_THAT(refused.text, HasSubstr("size is -3"));
}

TEST(Options, RefuseALimitThatIsNoNumber) {
  const Plugin plugin("1", {{"max_bytes", "much"}});
  EXPECT_NE(plugin.status, BP_OK);
  EXPECT_THAT(plugin.error, HasSubstr("max_bytes"));
}

// Large results are computed during the run instead of being folded.
TEST_F(Limited, FoldsNoMoreThanItMayHold) {
  GraphBuilder b;
  b.weight<int64_t>("n", BP_DTYPE_INT64, {1}, {4 << 20});
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i);
    b.node("ConstantOfShape", 9, {"n"}, {"c" + number}).node("ReduceSum", 13, {"c" + number}, {"y" + number});
    b.output("y" + number);
  }
  const Outcome outcome = run(b);
  EXPECT_EQ(outcome.status, BP_OK) << outcome.text;
}

}  // namespace
}  // namespace backplane::cpu::testing

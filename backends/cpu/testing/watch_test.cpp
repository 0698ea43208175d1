// SPDX-License-Identifier: Apache-2.0
// Runs end soon after their deadline, even in the middle of a kernel. Nodes that take too long are not folded.
#include "runtime/watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Ints = std::vector<int64_t>;
using Reals = std::vector<float>;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr milliseconds kLate{2000};
#else
constexpr milliseconds kLate{200};
#endif

std::chrono::nanoseconds computed() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Returns how long after its deadline a run may end. A run usually cannot interrupt the first writes to its outputs'
// memory. These take ten times longer on some virtual machines than on others, so the allowance is scaled by their
// measured time.
Clock::duration allowance() {
  static const std::chrono::nanoseconds kTouching = [] {
    const auto begin = computed();
    const std::vector<float> memory(size_t{64} << 18, 1.0f);  // 64 MiB
    return memory[memory.size() / 2] == 1 ? computed() - begin : begin;
  }();
  constexpr milliseconds kUsual{25};
  return std::max<Clock::duration>(
      kLate, std::chrono::nanoseconds(kLate) * kTouching.count() / std::chrono::nanoseconds(kUsual).count());
}

// Measures how long after its deadline a run ends: in wall-clock time, or, if other processes use the cores, in CPU
// time of this process.
class Lateness {
 public:
  uint64_t deadline() const { return static_cast<uint64_t>(deadline_.time_since_epoch().count()); }
  Clock::duration now() const {
    return std::min<Clock::duration>(Clock::now() - deadline_, computed() - begin_ - kRun);
  }

 private:
  static constexpr milliseconds kRun{20};
  const std::chrono::nanoseconds begin_ = computed();
  const Clock::time_point deadline_ = Clock::now() + kRun;
};

// Returns an input with pseudo-random numbers or strings.
HostTensor input(bp_dtype_t dtype, const Ints& extents) {
  size_t count = 1;
  for (int64_t extent : extents) count *= static_cast<size_t>(extent);
  const auto number = [](size_t i) { return static_cast<double>((i * 2654435761u) % 1000003) / 1000003 - 0.5; };
  if (dtype == BP_DTYPE_STRING) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) texts.push_back("Text number " + std::to_string((i * 2654435761u) % 1000003));
    return HostTensor::of_texts(extents, texts);
  }
  const auto filled = [&](auto zero, double scale) {
    std::vector<decltype(zero)> data(count);
    for (size_t i = 0; i < count; ++i) data[i] = static_cast<decltype(zero)>(number(i) * scale);
    return HostTensor::of(dtype, extents, data);
  };
  if (dtype == BP_DTYPE_FLOAT) return filled(0.0f, 1);
  if (dtype == BP_DTYPE_DOUBLE) return filled(0.0, 1);
  if (dtype == BP_DTYPE_INT32) return filled(int32_t{0}, 1e6);
  return filled(int64_t{0},
                extents == Ints{2000} ? 0 : 1e6);  // {2000} is the shape of RoiAlign's batch indices, which are all 0
}

struct Work {
  const char* name;
  const char* op_type;
  uint32_t since;
  std::vector<std::pair<bp_dtype_t, Ints>> inputs;
  Attributes attributes = {};
  bp_dtype_t result = BP_DTYPE_FLOAT;
  std::vector<Ints> numbers = {};  // further inputs: INT64 weights; one number is a scalar
};

std::vector<Work> work() {
  constexpr bp_dtype_t kFloat = BP_DTYPE_FLOAT, kDouble = BP_DTYPE_DOUBLE, kLong = BP_DTYPE_INT64,
                       kText = BP_DTYPE_STRING;
  const Ints square{300, 300};
  return {
      {"EinsumOfIntegers",
       "Einsum",
       12,
       {{kLong, square}, {kLong, square}, {kLong, square}, {kLong, square}},
       {{"equation", "ab,bc,cd,de->"}},
       kLong},
      {"RoiAlign",
       "RoiAlign",
       16,
       {{kFloat, {1, 256, 32, 32}}, {kFloat, {2000, 4}}, {kLong, {2000}}},
       {{"sampling_ratio", int64_t{512}}, {"output_height", int64_t{4}}, {"output_width", int64_t{4}}}},
      {"MatMul", "MatMul", 13, {{kFloat, {4000, 4000}}, {kFloat, {4000, 4000}}}},
      {"MatMulOfDoubles", "MatMul", 13, {{kDouble, {3000, 3000}}, {kDouble, {3000, 3000}}}, {}, kDouble},
      {"Conv", "Conv", 22, {{kFloat, {1, 128, 256, 256}}, {kFloat, {256, 128, 7, 7}}}},
      {"ConvOfDoubles", "Conv", 22, {{kDouble, {1, 64, 64, 64}}, {kDouble, {64, 64, 7, 7}}}, {}, kDouble},
      {"ConvTranspose", "ConvTranspose", 22, {{kDouble, {1, 64, 64, 64}}, {kDouble, {64, 64, 7, 7}}}, {}, kDouble},
      {"TopK", "TopK", 24, {{kDouble, {6000000}}}, {}, kDouble, {{3000000}}},
      {"Unique", "Unique", 11, {{kLong, {8000000}}}, {}, kLong},
      {"Det", "Det", 22, {{kDouble, {2500, 2500}}}, {}, kDouble},
      {"Lstm",
       "LSTM",
       22,
       {{kFloat, {100000, 1, 64}}, {kFloat, {1, 512, 64}}, {kFloat, {1, 512, 128}}},
       {{"hidden_size", int64_t{128}}}},
      {"LstmOfDoubles",
       "LSTM",
       22,
       {{kDouble, {100000, 1, 64}}, {kDouble, {1, 512, 64}}, {kDouble, {1, 512, 128}}},
       {{"hidden_size", int64_t{128}}},
       kDouble},
      {"MaxPool", "MaxPool", 22, {{kDouble, {1, 1, 1500, 1500}}}, {{"kernel_shape", Ints{255, 255}}}, kDouble},
      {"Lrn", "LRN", 13, {{kFloat, {1, 30000, 8, 8}}}, {{"size", int64_t{30001}}}},
      {"FlexAttention",
       "ai.onnx.preview::FlexAttention",
       1,
       {{kDouble, {1, 1, 6000, 64}}, {kDouble, {1, 1, 6000, 64}}, {kDouble, {1, 1, 6000, 64}}},
       {},
       kDouble},
      {"Attention",
       "Attention",
       24,
       {{kFloat, {1, 8, 16384, 64}}, {kFloat, {1, 8, 16384, 64}}, {kFloat, {1, 8, 16384, 64}}}},
      {"Resize",
       "Resize",
       19,
       {{kDouble, {1, 2, 1500, 1500}}, {kFloat, {0}}, {kFloat, {0}}},
       {{"mode", "cubic"}, {"antialias", int64_t{1}}},
       kDouble,
       {{1, 2, 3000, 3000}}},
      {"Dft", "DFT", 20, {{kFloat, {1, 4000037, 1}}}},
      {"RegexFullMatch",
       "RegexFullMatch",
       20,
       {{kText, {2000000}}},
       {{"pattern", ".*[0-9]{3}x?(a|b|[0-9])*"}},
       BP_DTYPE_BOOL},
      {"StringNormalizer", "StringNormalizer", 10, {{kText, {2000000}}}, {{"case_change_action", "UPPER"}}, kText},
      {"CastFromTexts", "Cast", 24, {{kDouble, {6000000}}}, {}, kText},
      {"TfIdf",
       "TfIdfVectorizer",
       9,
       {{kLong, {30000}}},
       {{"mode", "TF"},
        {"min_gram_length", int64_t{2}},
        {"max_gram_length", int64_t{2}},
        {"max_skip_count", int64_t{20000}},
        {"ngram_counts", Ints{0, 0}},
        {"ngram_indexes", Ints{0}},
        {"pool_int64s", Ints{1, 2}}}},
  };
}

class EndsIn : public ::testing::TestWithParam<Work> {};

GraphBuilder graph_of(const Work& w, bool constant, std::vector<HostTensor>* inputs) {
  GraphBuilder b;
  std::vector<std::string> names;
  for (const auto& [dtype, extents] : w.inputs) {
    names.push_back("x" + std::to_string(names.size()));
    HostTensor tensor = input(dtype, extents);
    if (constant) {
      b.weight_bytes(names.back(), dtype, extents, tensor.bytes);
    } else {
      b.input(names.back(), dtype, extents);
      inputs->push_back(std::move(tensor));
    }
  }
  for (const Ints& numbers : w.numbers) {
    names.push_back("n" + std::to_string(names.size()));
    b.weight<int64_t>(names.back(), BP_DTYPE_INT64,
                      numbers.size() == 1 ? Ints{} : Ints{static_cast<int64_t>(numbers.size())}, numbers);
  }
  b.node(w.op_type, w.since, names, {"y"}, w.result, w.attributes).output("y");
  return b;
}

TEST_P(EndsIn, MillisecondsAfterTheDeadline) {
  for (const char* threads : {"1", "2"}) {
    Plugin plugin(threads);
    std::vector<HostTensor> inputs;
    GraphBuilder b = graph_of(GetParam(), false, &inputs);
    Compiled program(plugin, b.graph());
    ASSERT_EQ(program.status, BP_OK) << program.text;
    const Lateness late;
    const Outcome run = program.run(std::move(inputs), late.deadline());
    EXPECT_LT(late.now(), allowance()) << threads;
    EXPECT_EQ(run.status, BP_TIMED_OUT) << run.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EndsIn, ::testing::ValuesIn(work()),
                         [](const auto& info) { return info.param.name; });

TEST(EndsInLoop, OfNoEnd) {
  GraphBuilder body;
  body.input("i", BP_DTYPE_INT64, {}).input("c", BP_DTYPE_BOOL, {}).input("s", BP_DTYPE_FLOAT, {});
  body.node("Identity", 25, {"c"}, {"c2"}, BP_DTYPE_BOOL).node("Neg", 13, {"s"}, {"s2"}).output("c2").output("s2");
  GraphBuilder b;
  b.input("s", BP_DTYPE_FLOAT, {})
      .node("Loop", 25, {"", "", "s"}, {"y"}, BP_DTYPE_FLOAT, {{"body", &body}})
      .output("y");
  Plugin plugin("1");
  Compiled program(plugin, b.graph());
  ASSERT_EQ(program.status, BP_OK) << program.text;
  const Lateness late;
  const Outcome run = program.run({HostTensor::of<float>(BP_DTYPE_FLOAT, {}, {1})}, late.deadline());
  EXPECT_LT(late.now(), allowance());
  EXPECT_EQ(run.status, BP_TIMED_OUT) << run.text;
}

// A node that takes long to fold is computed during the run instead, and the run's deadline stops it.
TEST(Folding, StopsWhereItTakesLong) {
  for (const Work& w : work()) {
    const std::string name = w.name;
    if (name != "EinsumOfIntegers" && name != "ConvOfDoubles" && name != "TfIdf") continue;
    Plugin plugin("2");
    GraphBuilder b = graph_of(w, true, nullptr);
    const auto begin = Clock::now();
    Compiled program(plugin, b.graph());
    EXPECT_EQ(program.status, BP_OK) << name << ": " << program.text;
    EXPECT_LT(Clock::now() - begin, milliseconds(4000)) << name;
    const Lateness late;
    const Outcome run = program.run({}, late.deadline());
    EXPECT_LT(late.now(), allowance()) << name;
    EXPECT_EQ(run.status, BP_TIMED_OUT) << name << ": " << run.text;
  }
}

}  // namespace
}  // namespace backplane::cpu::testing

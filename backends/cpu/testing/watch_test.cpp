// SPDX-License-Identifier: Apache-2.0
// Runs end soon after their deadline, even in the middle of a kernel. Nodes that take too long are not folded.
#include "runtime/watch.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

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

// Returns the user CPU time of this process, over all threads.
std::chrono::nanoseconds computed() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec) + std::chrono::microseconds(usage.ru_utime.tv_usec);
}

// Measures how long after its deadline a run ends: in wall-clock time or in user CPU time, whichever is shorter. User
// CPU time is shorter where other processes use the cores, and where the page faults of memory that is touched first
// are slow. Such memory can take 10 times longer on one virtual machine than on another, and even longer before the
// hypervisor has assigned it to the machine.
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
  if (dtype == BP_DTYPE_INT8) return filled(int8_t{0}, 200);
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
      {"ConvOfDoubles", "Conv", 22, {{kDouble, {1, 64, 64, 64}}, {kDouble, {256, 64, 7, 7}}}, {}, kDouble},
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
    EXPECT_LT(late.now(), kLate) << threads;
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
  EXPECT_LT(late.now(), kLate);
  EXPECT_EQ(run.status, BP_TIMED_OUT) << run.text;
}

// One window of the convolution takes longer than the deadline allows.
TEST(EndsInConvInteger, OfLargeWindows) {
  const HostTensor x = input(BP_DTYPE_INT8, {1, 1, 4000, 4000}), w = input(BP_DTYPE_INT8, {1, 1, 3900, 3900});
  GraphBuilder b;
  b.input("x", x.dtype, x.extents).weight_bytes("w", w.dtype, w.extents, w.bytes);
  b.node("ConvInteger", 10, {"x", "w"}, {"y"}, BP_DTYPE_INT32).output("y");
  Plugin plugin("1");
  Compiled program(plugin, b.graph());
  ASSERT_EQ(program.status, BP_OK) << program.text;
  const Lateness late;
  const Outcome run = program.run({x}, late.deadline());
  EXPECT_LT(late.now(), kLate);
  EXPECT_EQ(run.status, BP_TIMED_OUT) << run.text;
}

// Strings are copied with checks of the deadline, whether they are many or long. Each result has at least 2 GB.
TEST(EndsInTexts, ManyOrLong) {
  const HostTensor rows = HostTensor::of_texts({1000}, std::vector<std::string>(1000, std::string(2000, 'a')));
  const HostTensor row = HostTensor::of_texts({1}, {std::string(2 << 20, 'a')});
  struct Case {
    const char* op_type;
    uint32_t since;
    HostTensor texts;
    std::vector<std::string> inputs;
  };
  const Case cases[] = {{"Expand", 13, rows, {"x", "extents"}}, {"Tile", 13, rows, {"x", "times"}},
                        {"Gather", 13, rows, {"x", "zeros"}},   {"Where", 16, rows, {"chosen", "x", "x"}},
                        {"Expand", 13, row, {"x", "times"}},    {"StringConcat", 20, rows, {"x", "many"}}};
  for (const Case& c : cases) {
    Plugin plugin("2");
    GraphBuilder b;
    std::vector<HostTensor> inputs = {c.texts};
    b.input("x", BP_DTYPE_STRING, c.texts.extents);
    if (std::ranges::find(c.inputs, "many") != c.inputs.end()) {
      b.input("many", BP_DTYPE_STRING, {1000, 1});
      inputs.push_back(HostTensor::of_texts({1000, 1}, std::vector<std::string>(1000, "b")));
    }
    b.weight<int64_t>("extents", BP_DTYPE_INT64, {2}, {1000, 1000})
        .weight<int64_t>("times", BP_DTYPE_INT64, {1}, {1000});
    b.weight<int64_t>("zeros", BP_DTYPE_INT64, {1000000}, Ints(1000000));
    b.weight<uint8_t>("chosen", BP_DTYPE_BOOL, {1000, 1000}, std::vector<uint8_t>(1000000, 1));
    b.node(c.op_type, c.since, c.inputs, {"y"}, BP_DTYPE_STRING).output("y");
    Compiled program(plugin, b.graph());
    ASSERT_EQ(program.status, BP_OK) << program.text;
    const Lateness late;
    const Outcome run = program.run(std::move(inputs), late.deadline());
    EXPECT_LT(late.now(), kLate) << c.op_type;
    EXPECT_EQ(run.status, BP_TIMED_OUT) << c.op_type << ": " << run.text;
  }
}

// The delimiter almost occurs at every position of the text.
TEST(StringSplit, TakesLinearTime) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_STRING, {1}).type_of_unknown_rank("n", BP_DTYPE_INT64);
  b.node("StringSplit", 20, {"x"}, {"y", "n"}, BP_DTYPE_STRING, {{"delimiter", std::string(1 << 20, 'a') + "b"}});
  b.output("y");
  Plugin plugin("1");
  Compiled program(plugin, b.graph());
  ASSERT_EQ(program.status, BP_OK) << program.text;
  const auto begin = computed();
  const Outcome run = program.run({HostTensor::of_texts({1}, {std::string(2 << 20, 'a')})});
  EXPECT_LT(computed() - begin, milliseconds(2000));
  ASSERT_EQ(run.status, BP_OK) << run.text;
  EXPECT_EQ(run.outputs[0].texts(), std::vector<std::string>{std::string(2 << 20, 'a')});
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
    EXPECT_LT(late.now(), kLate) << name;
    EXPECT_EQ(run.status, BP_TIMED_OUT) << name << ": " << run.text;
  }
}

}  // namespace
}  // namespace backplane::cpu::testing

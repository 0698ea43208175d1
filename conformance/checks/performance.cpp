// SPDX-License-Identifier: Apache-2.0
// Cases of the group performance: the time of a few ordinary calls, and whether the device computes them on every run.
#include <algorithm>
#include <chrono>

#include "checks/group.h"

namespace backplane::conform {
namespace {

using Clock = std::chrono::steady_clock;

// The problems are so large that a run takes long compared with the clock's resolution and the cost of a call.
Problem large_matmul(Random& random) {
  return {"MatMul",
          {},
          {random_tensor(random, BP_DTYPE_FLOAT, {256, 512}, Fill::kAroundZero),
           constant(random_tensor(random, BP_DTYPE_FLOAT, {512, 384}, Fill::kAroundZero))}};
}
Problem large_conv(Random& random) {
  return {"Conv",
          {{"auto_pad", std::string("NOTSET")},
           {"dilations", Extents{1, 1}},
           {"group", int64_t{1}},
           {"kernel_shape", Extents{3, 3}},
           {"pads", Extents{1, 1, 1, 1}},
           {"strides", Extents{1, 1}}},
          {random_tensor(random, BP_DTYPE_FLOAT, {1, 32, 28, 28}, Fill::kAroundZero),
           constant(random_tensor(random, BP_DTYPE_FLOAT, {32, 32, 3, 3}, Fill::kAroundZero))}};
}
Problem large_softmax(Random& random) {
  return {"Softmax", {{"axis", int64_t{-1}}}, {random_tensor(random, BP_DTYPE_FLOAT, {512, 1024}, Fill::kWide)}};
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

constexpr int kRounds = 15;

struct Times {
  double fresh = 0, repeated = 0;  // median times in seconds, on new and on repeated inputs
  int faster = 0;  // rounds in which the repeated input took less than nine tenths of the time of the new one
  // If each round is a coin toss, 13 or more of 15 occur in 4 of 1,000 measurements.
  bool is_suspicious() const { return repeated < 0.9 * fresh && faster >= kRounds - 2; }
};

// Alternates runs on new and on repeated inputs, so that anything that slows the machine affects both. The inputs are
// written before the clock starts in both cases.
Answer measure(Instance& instance, Random& random, const std::vector<onnx::Tensor>& inputs, Times& out_times) {
  constexpr int kWarmUp = 2;
  std::vector<std::vector<onnx::Tensor>> draws(kWarmUp + kRounds);  // drawn first, because drawing evicts caches
  for (std::vector<onnx::Tensor>& drawn : draws) {
    for (const onnx::Tensor& input : inputs) {
      drawn.push_back(random_tensor(random, input.dtype, input.extents, Fill::kAroundZero));
    }
  }
  std::vector<double> fresh, repeated;
  for (int round = 0; round < kWarmUp + kRounds; ++round) {
    const std::vector<onnx::Tensor>& drawn = draws[static_cast<size_t>(round)];
    for (std::vector<double>* times : {&fresh, &repeated}) {
      for (uint32_t i = 0; i < drawn.size(); ++i) instance.input(i).write(drawn[i]);
      const auto start = Clock::now();
      const Answer answer = instance.run();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (!answer.ok()) return answer;
      if (round >= kWarmUp) times->push_back(seconds);
    }
  }
  int faster = 0;
  for (size_t i = 0; i < fresh.size(); ++i) faster += repeated[i] < 0.9 * fresh[i];
  out_times = {median(fresh), median(repeated), faster};
  return {};
}

Result run(Bench& bench, Problem (*make)(Random& random), const std::string& name) {
  Random random(bench.seed(), name);
  Result result;
  const auto subject = make_subject(bench.device(), make(random), result);
  if (subject == nullptr) return result;
  Answer answer;
  const auto program = Program::compile(bench.device(), *subject->graph, answer);
  const auto instance = program == nullptr ? nullptr : Instance::create(*program, answer);
  if (instance == nullptr) return failed(answer.describe());
  if (answer = instance->bind_all(subject->inputs); !answer.ok()) return failed(answer.describe());
  std::vector<onnx::Tensor> outputs;
  if (answer = instance->run_checked(outputs); !answer.ok()) return failed(answer.describe());
  if (const std::string fault = subject->fault(outputs); !fault.empty()) return failed(fault);
  Times times;
  for (int attempt = 0; attempt < 3; ++attempt) {  // a suspicious measurement is repeated
    if (answer = measure(*instance, random, subject->inputs, times); !answer.ok()) return failed(answer.describe());
    if (!times.is_suspicious()) break;
  }
  result = passed(1);
  result.reason = fmt::format("{:.3f} ms", times.fresh * 1e3);
  if (times.is_suspicious()) {
    result.state = State::kMistrusted;
    result.reason =
        fmt::format("{:.3f} ms on new inputs, but {:.3f} ms on the inputs of the run before: results may be cached",
                    times.fresh * 1e3, times.repeated * 1e3);
  }
  return result;
}

}  // namespace

void add_performance(const Selection&, std::vector<Case>& out_cases) {
  struct Row {
    const char* name;
    Problem (*make)(Random& random);
  };
  constexpr Row kRows[] = {{"matmul", large_matmul}, {"conv", large_conv}, {"softmax", large_softmax}};
  for (const Row& row : kRows) {
    const std::string name = fmt::format("performance/{}", row.name);
    out_cases.push_back({name, [=](Bench& bench) { return run(bench, row.make, name); }});
  }
}

}  // namespace backplane::conform

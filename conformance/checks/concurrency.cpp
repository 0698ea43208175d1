// SPDX-License-Identifier: Apache-2.0
// Cases of the group concurrency: ten threads share one program, or each has its own.
#include <mutex>
#include <thread>

#include "checks/group.h"

namespace backplane::conform {
namespace {

constexpr int kThreads = 10;

// Runs `body(thread)` on ten threads. Returns the first fault that a thread reports, or an empty string.
template <class F>
std::string on_threads(F body) {
  std::mutex mutex;
  std::string fault;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::string mine;
      try {
        mine = body(t);
      } catch (const std::exception& error) {
        mine = error.what();
      }
      const std::lock_guard lock(mutex);
      if (fault.empty() && !mine.empty()) fault = fmt::format("thread {}: {}", t, mine);
    });
  }
  threads.clear();
  return fault;
}

// One subject for each thread. All have the same graph and weights, but their own run-time inputs.
std::vector<std::unique_ptr<Subject>> subjects(Bench& bench, const char* op_case, Result& out_result) {
  std::vector<std::unique_ptr<Subject>> all;
  const Problem first = problem_of(op_case, bench.seed(), "thread 0");
  for (int t = 0; t < kThreads; ++t) {
    Problem problem = problem_of(op_case, bench.seed(), fmt::format("thread {}", t));
    for (size_t i = 0; i < problem.arguments.size(); ++i) {
      if (first.arguments[i].constant) problem.arguments[i] = first.arguments[i];
    }
    all.push_back(make_subject(bench.device(), std::move(problem), out_result));
    if (all.back() == nullptr) return {};
  }
  return all;
}

std::string run_often(const Program& program, const Subject& subject, int rounds) {
  Answer answer;
  const auto instance = Instance::create(program, answer);
  if (instance == nullptr) return answer.describe();
  if (answer = instance->bind_all(subject.inputs); !answer.ok()) return answer.describe();
  for (int i = 0; i < rounds; ++i) {
    std::vector<onnx::Tensor> outputs;
    if (answer = instance->run_checked(outputs); !answer.ok()) return answer.describe();
    if (const std::string fault = subject.fault(outputs); !fault.empty()) return fault;
  }
  return "";
}

Result one_program(Bench& bench, const char* op_case, int rounds) {
  Result result;
  const auto all = subjects(bench, op_case, result);
  if (all.empty()) return result;
  Answer answer;
  const auto program = Program::compile(bench.device(), *all[0]->graph, answer);
  if (program == nullptr) return failed(answer.describe());
  const std::string fault =
      on_threads([&](int t) { return run_often(*program, *all[static_cast<size_t>(t)], rounds); });
  return fault.empty() ? passed(1) : failed(fault);
}

Result own_programs(Bench& bench, const char* op_case, int rounds) {
  Result result;
  const auto all = subjects(bench, op_case, result);
  if (all.empty()) return result;
  const std::string fault = on_threads([&](int t) -> std::string {
    const Subject& subject = *all[static_cast<size_t>(t)];
    std::vector<Claim> claims;
    if (const Answer answer = bench.device().coverage(*subject.graph, claims); !answer.ok()) return answer.describe();
    Answer answer;
    const auto program = Program::compile(bench.device(), *subject.graph, answer);
    return program == nullptr ? answer.describe() : run_often(*program, subject, rounds);
  });
  return fault.empty() ? passed(1) : failed(fault);
}

}  // namespace

void add_concurrency(const Selection& selection, std::vector<Case>& out_cases) {
  const int rounds = selection.full ? 100 : 10;
  for (const char* op_case : {"Add/float/same_long", "Relu/float/long", "MatMul/float/block_around_zero_constant",
                              "Conv/float/wide_around_zero", "Softmax/float/long", "LayerNormalization/float/bert",
                              "Transpose/float/nhwc", "MaxPool/float/overlap"}) {
    out_cases.push_back({fmt::format("concurrency/one_program/{}", op_case),
                         [=](Bench& bench) { return one_program(bench, op_case, rounds); }});
    out_cases.push_back({fmt::format("concurrency/own_programs/{}", op_case),
                         [=](Bench& bench) { return own_programs(bench, op_case, rounds); }});
  }
}

}  // namespace backplane::conform

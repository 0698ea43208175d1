// SPDX-License-Identifier: Apache-2.0
// Cases of the group lifecycle: memory, handles and threads must not grow over loops of create, run and destroy.
#include <dirent.h>
#include <malloc.h>

#include <fstream>

#include "checks/group.h"

// A sanitizer replaces the allocator by its own, which mallinfo2 does not count. NULL without a sanitizer.
extern "C" [[gnu::weak]] size_t __sanitizer_get_current_allocated_bytes();

namespace backplane::conform {
namespace {

int64_t heap_in_use() {
  if (__sanitizer_get_current_allocated_bytes != nullptr)
    return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

size_t entries(const char* folder) {
  size_t count = 0;
  DIR* dir = opendir(folder);
  while (dir != nullptr && readdir(dir) != nullptr) ++count;
  if (dir != nullptr) closedir(dir);
  return count;
}

struct Usage {
  int64_t heap = 0;                 // bytes in use
  int64_t resident = 0;             // bytes
  size_t handles = 0, threads = 0;  // open file descriptors and threads of this process
  uint64_t allocated = 0;           // bytes that the host holds for the plugin

  static Usage now(Host& host) {
    malloc_trim(0);
    int64_t pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    // A sanitizer keeps freed memory for a while to detect use after free, so resident memory says nothing.
    if (__sanitizer_get_current_allocated_bytes != nullptr) resident = 0;
    return {heap_in_use(), resident * 4096, entries("/proc/self/fd"), entries("/proc/self/task"), host.live_bytes()};
  }
};

// Returns a pass, or a failure that names what grew over `rounds` rounds.
Result compare(const Usage& before, const Usage& after, int rounds) {
  constexpr int64_t kSlackHeap = 64 << 10, kSlackResident = 4 << 20;
  const auto grew = [&](const char* what, int64_t from, int64_t to) {
    return failed(fmt::format("{} grew from {} to {} over {} rounds", what, from, to, rounds));
  };
  if (after.heap > before.heap + kSlackHeap) return grew("the heap", before.heap, after.heap);
  if (after.resident > before.resident + kSlackResident)
    return grew("resident memory", before.resident, after.resident);
  if (after.handles > before.handles)
    return grew("open handles", static_cast<int64_t>(before.handles), static_cast<int64_t>(after.handles));
  if (after.threads > before.threads)
    return grew("threads", static_cast<int64_t>(before.threads), static_cast<int64_t>(after.threads));
  if (after.allocated > before.allocated)
    return grew("the host's memory", static_cast<int64_t>(before.allocated), static_cast<int64_t>(after.allocated));
  return passed(1);
}

// Repeats `step` to warm up, then in at most three periods until one shows no growth. A leak grows in every period,
// whereas a one-time allocation (a worker thread's, for example) may come late on a busy machine. `step` returns a
// description of a failure, or an empty string.
template <class F>
Result measure(Bench& bench, int rounds, F step) {
  constexpr int kPeriods = 3;
  const auto repeat = [&](int times) -> std::string {
    for (int i = 0; i < times; ++i) {
      if (std::string fault = step(); !fault.empty()) return fault;
    }
    return "";
  };
  if (const std::string fault = repeat(rounds / 4 + 2); !fault.empty()) return failed(fault);
  Usage before = Usage::now(bench.host());
  Result result;
  for (int period = 0; period < kPeriods; ++period) {
    if (const std::string fault = repeat(rounds); !fault.empty()) return failed(fault);
    const Usage after = Usage::now(bench.host());
    result = compare(before, after, rounds);
    if (result.state == State::kPass) return result;
    before = after;
  }
  return result;
}

Result compile_and_run(Bench& bench, const char* op_case, int rounds) {
  Result result;
  const auto subject = make_subject(bench.device(), problem_of(op_case, bench.seed(), "lifecycle"), result);
  if (subject == nullptr) return result;
  return measure(bench, rounds, [&]() -> std::string {
    std::vector<onnx::Tensor> outputs;
    const Answer answer = compute(bench.device(), *subject->graph, subject->inputs, outputs);
    return answer.ok() ? "" : answer.describe();
  });
}

Result many_runs(Bench& bench, const char* op_case, int rounds) {
  Result result;
  const auto subject = make_subject(bench.device(), problem_of(op_case, bench.seed(), "lifecycle"), result);
  if (subject == nullptr) return result;
  Answer answer;
  const auto program = Program::compile(bench.device(), *subject->graph, answer);
  const auto instance = program == nullptr ? nullptr : Instance::create(*program, answer);
  if (instance == nullptr) return failed(answer.describe());
  if (answer = instance->bind_all(subject->inputs); !answer.ok()) return failed(answer.describe());
  return measure(bench, rounds, [&]() -> std::string {
    const Answer run = instance->run();
    return run.ok() ? "" : run.describe();
  });
}

Result open_and_close(Bench& bench, int rounds) {
  const Library& library = bench.library();
  return measure(bench, rounds, [&]() -> std::string {
    Host host;
    {
      const Backend backend(library, host);
      const Device device(backend, bench.device_index());
    }
    return host.live_bytes() == 0
               ? ""
               : fmt::format("the plugin keeps {} bytes of the host's memory after destroy", host.live_bytes());
  });
}

Result coverage_often(Bench& bench, int rounds) {
  const Problem problem = problem_of("Add/float/same", bench.seed(), "lifecycle");
  const Graph graph(*graph_of(problem, reference(problem), std::max(14u, bench.device().newest_opset())));
  return measure(bench, rounds, [&]() -> std::string {
    std::vector<Claim> claims;
    const Answer answer = bench.device().coverage(graph, claims);
    return answer.ok() ? "" : answer.describe();
  });
}

}  // namespace

void add_lifecycle(const Selection& selection, std::vector<Case>& out_cases) {
  const int rounds = selection.full ? 2000 : 200;
  for (const char* op_case : {"Add/float/same", "MatMul/float/odd_positive_constant", "Conv/float/3x3_padded_positive",
                              "Softmax/float/last", "Transpose/float/nhwc"}) {
    out_cases.push_back({fmt::format("lifecycle/compile_run/{}", op_case),
                         [=](Bench& bench) { return compile_and_run(bench, op_case, rounds); }});
    out_cases.push_back({fmt::format("lifecycle/runs/{}", op_case),
                         [=](Bench& bench) { return many_runs(bench, op_case, rounds * 10); }});
  }
  out_cases.push_back({"lifecycle/open_close", [=](Bench& bench) { return open_and_close(bench, rounds / 4); }});
  out_cases.push_back({"lifecycle/coverage", [=](Bench& bench) { return coverage_often(bench, rounds * 10); }});
}

}  // namespace backplane::conform

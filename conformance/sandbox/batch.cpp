// SPDX-License-Identifier: Apache-2.0
#include "sandbox/batch.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "sandbox/progress.h"

namespace backplane::conform {

void run_batches(uint32_t jobs, const ChildSettings& settings, const std::vector<Case>& cases, const Sink& sink) {
  constexpr size_t kBatch = 32;
  Progress progress(cases.size());
  std::atomic<size_t> next = 0;
  std::exception_ptr failure;
  std::mutex sink_mutex, failure_mutex;
  const auto report = [&](std::vector<Result> results) {
    const std::lock_guard lock(sink_mutex);
    for (Result& result : results) {
      const State state = sink(std::move(result));
      progress.step(state != State::kPass && state != State::kNotSupported);
    }
  };
  const auto work = [&] {
    try {
      for (size_t first; (first = next.fetch_add(kBatch)) < cases.size();) {
        const size_t last = std::min(first + kBatch, cases.size());
        std::vector<Result> results;
        run_in_children(settings,
                        {cases.begin() + static_cast<int64_t>(first), cases.begin() + static_cast<int64_t>(last)},
                        [&](Result result) { results.push_back(std::move(result)); });
        report(std::move(results));
      }
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      failure = std::current_exception();
      next = cases.size();
    }
  };
  std::vector<std::thread> workers;
  try {
    for (uint32_t i = 0; i < jobs; ++i) workers.emplace_back(work);
  } catch (const std::system_error&) {  // the system has no more threads, so fewer workers share the cases
    if (workers.empty()) throw;
  }
  for (std::thread& worker : workers) worker.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace backplane::conform

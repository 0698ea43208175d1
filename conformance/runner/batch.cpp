// SPDX-License-Identifier: Apache-2.0
#include "runner/batch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>

namespace backplane::conform {

void run_batches(uint32_t jobs, const ChildSettings& settings, const std::vector<Case>& cases, Journal& journal) {
  constexpr size_t kBatch = 32;
  const bool shows_progress = isatty(STDERR_FILENO) != 0;
  std::atomic<size_t> next = 0, done = 0;
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto report = [&](Result result) {
    journal.add(std::move(result));
    if (shows_progress) fmt::print(stderr, "\r{} of {}", ++done, cases.size());
  };
  const auto work = [&] {
    try {
      for (size_t first; (first = next.fetch_add(kBatch)) < cases.size();) {
        const size_t last = std::min(first + kBatch, cases.size());
        run_in_children(settings, {cases.begin() + first, cases.begin() + last}, report);
      }
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      failure = std::current_exception();
      next = cases.size();
    }
  };
  std::vector<std::thread> workers;
  for (uint32_t i = 0; i < jobs; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  if (shows_progress) fmt::print(stderr, "\r\033[K");
  if (failure) std::rethrow_exception(failure);
}

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
#include "runtime/parallel.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <optional>

#include "runtime/active_run.h"
#include "runtime/threads.h"
#include "runtime/tsan.h"

namespace backplane::cpu {

namespace {

// More chunks than threads, so that a preempted thread does not delay the whole loop.
constexpr int64_t kChunksPerThread = 4;

}  // namespace

int thread_count() {
  const Threads* current = thread_state().threads;
  if (current != nullptr) return current->count();
  // A oneTBB worker that runs a chunk of an outer loop runs nested loops in the same arena. Other threads have no
  // arena.
  bool worker = oneapi::tbb::this_task_arena::current_thread_index() != oneapi::tbb::task_arena::not_initialized;
  return worker ? std::max(1, oneapi::tbb::this_task_arena::max_concurrency()) : 1;
}

int thread_index() {
  if (const int index = Team::helper_thread_index(); index >= 0) return index;
  if (const Threads* current = thread_state().threads; current != nullptr && current->count() == 1) return 0;
  return std::max(0, oneapi::tbb::this_task_arena::current_thread_index());
}

void parallel_erased(int64_t count, int64_t grain, void (*body)(void* self, int64_t begin, int64_t end), void* self) {
  if (count <= 0) return;
  if (count <= grain) return body(self, 0, count);
  grain = std::max<int64_t>(grain, 1);
  int threads = thread_count();
  int64_t chunks = std::min(count / grain, threads * kChunksPerThread);
  const ThreadState state = thread_state();
  const Loop whole{count, chunks, body, self, state.budget, state.watch, grain};
  if (threads == 1 || chunks <= 1) return whole.run_part(0, count);
  // A run that is alone uses the team. Concurrent runs share oneTBB's workers, which never outnumber the hardware
  // threads. Outside of runs, when weights are packed, each loop counts as a run.
  std::optional<ActiveRun> packing;
  Threads* current = state.threads;
  if (current != nullptr && state.active_run == nullptr) packing.emplace();
  const ActiveRun* active_run = packing ? &*packing : state.active_run;
  const UseActiveRun use_run(active_run);
  if (current != nullptr && active_run->alone()) {
    Team* team = current->team();
    if (team != nullptr && team->run(whole, thread_index())) return;
  }
  auto loop = [&] {
    oneapi::tbb::parallel_for(
        int64_t{0}, chunks,
        [&](int64_t chunk) {
          happens_after(&chunks);
          const WorkFor caller(whole);
          whole.run_chunk(chunk);
          happens_before(&chunks);
        },
        oneapi::tbb::simple_partitioner{});
  };
  // Declares the order also for the call of `execute`: if the arena is full, one of its threads starts the loop instead
  // of this thread.
  happens_before(&chunks);
  // A loop inside the arena is isolated: otherwise, a thread that waits for it could start another chunk of an outer
  // loop, which would overwrite that thread's part of the scratch memory.
  if (current != nullptr && !state.inside_arena)
    current->arena().execute(loop);
  else
    oneapi::tbb::this_task_arena::isolate(loop);
  happens_after(&chunks);
}

}  // namespace backplane::cpu

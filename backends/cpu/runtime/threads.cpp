// SPDX-License-Identifier: Apache-2.0
#include "runtime/threads.h"

#include <oneapi/tbb/info.h>

#include <atomic>

#include "runtime/active_run.h"
#include "runtime/tsan.h"

namespace backplane::cpu {

namespace {

// oneTBB loads its NUMA library in a way that sanitizers do not support.
#if defined(__SANITIZE_ADDRESS__) || defined(BACKPLANE_TSAN)
constexpr bool kMayBind = false;
#else
constexpr bool kMayBind = true;
#endif

// Binds each new arena to the next NUMA node, so that its threads use local memory. An arena with more threads than the
// node has hardware threads is not bound.
oneapi::tbb::task_arena::constraints near_memory(int count) {
  static std::atomic<size_t> arenas = 0;
  const auto nodes = oneapi::tbb::info::numa_nodes();
  const auto node = nodes[arenas++ % nodes.size()];
  return {count <= oneapi::tbb::info::default_concurrency(node) ? node : oneapi::tbb::task_arena::automatic, count};
}

}  // namespace

Threads::Threads(int count, ThreadsPolicy policy, uint32_t numa_nodes, int64_t max_bytes)
    : count_(count),
      budget_(max_bytes),
      arena_(kMayBind && numa_nodes > 1
                 ? near_memory(count)
                 : oneapi::tbb::task_arena::constraints{oneapi::tbb::task_arena::automatic, count}) {
  const bool wanted = policy == ThreadsPolicy::kTeam || (policy == ThreadsPolicy::kAuto && numa_nodes <= 1);
  if (wanted && count > 1) team_.emplace(count);
}

UseThreads::UseThreads(Threads& threads, bool inside) : before_(thread_state()) {
  ThreadState& state = thread_state();
  state.inside_arena = inside || (state.inside_arena && state.threads == &threads);
  state.threads = &threads;
  state.budget = &threads.budget();
}
UseThreads::~UseThreads() {
  ThreadState& state = thread_state();
  state.threads = before_.threads;
  state.inside_arena = before_.inside_arena;
  state.budget = before_.budget;
}

namespace {

// Call happens_before and happens_after when a scope ends, also when it ends with an exception.
struct HappensBeforeAtEnd {
  void* point;
  ~HappensBeforeAtEnd() { happens_before(point); }
};
struct HappensAfterAtEnd {
  void* point;
  ~HappensAfterAtEnd() { happens_after(point); }
};

}  // namespace

void run_inside_erased(Threads& threads, void (*body)(void* self), void* self) {
  const ActiveRun active_run;
  if (threads.count() == 1) {
    const std::lock_guard lock(threads.only_thread());
    const UseThreads use(threads, true);
    const UseActiveRun use_run(&active_run);
    return body(self);
  }
  happens_before(&self);
  const HappensAfterAtEnd after{&self};
  threads.arena().execute([&] {
    happens_after(&self);
    const HappensBeforeAtEnd before{&self};
    UseThreads use(threads, true);
    const UseActiveRun use_run(&active_run);
    body(self);
  });
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
#include "runtime/threads.h"

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "runtime/kernel.h"
#include "runtime/presence.h"
#include "runtime/tsan.h"

namespace backplane::cpu {

namespace {

thread_local Threads* current = nullptr;
thread_local bool inside_arena = false;           // of `current`
thread_local const Presence* presence = nullptr;  // of what this thread began and is in

class AsPresent {
 public:
  explicit AsPresent(const Presence* here) : before_(std::exchange(presence, here)) {}
  ~AsPresent() { presence = before_; }
  AsPresent(const AsPresent&) = delete;
  AsPresent& operator=(const AsPresent&) = delete;

 private:
  const Presence* before_;
};

// More pieces than threads, so that a thread that was held up by another process does not hold up the loop.
constexpr int64_t kPiecesPerThread = 4;

// Sanitizers refuse the way in which oneTBB opens its library for NUMA nodes.
#if defined(__SANITIZE_ADDRESS__) || defined(BACKPLANE_TSAN)
constexpr bool kMayBind = false;
#else
constexpr bool kMayBind = true;
#endif

// Threads that fit in one NUMA node stay in one, each arena in the next: their memory is then near. More threads than a
// node has cores are left to the system.
oneapi::tbb::task_arena::constraints near_memory(int count) {
  static std::atomic<size_t> arenas = 0;
  const auto nodes = oneapi::tbb::info::numa_nodes();
  const auto node = nodes[arenas++ % nodes.size()];
  return {count <= oneapi::tbb::info::default_concurrency(node) ? node : oneapi::tbb::task_arena::automatic, count};
}

}  // namespace

Threads::Threads(int count, bool reference, uint32_t numa_nodes)
    : count_(count),
      reference_(reference),
      arena_(kMayBind && numa_nodes > 1
                 ? near_memory(count)
                 : oneapi::tbb::task_arena::constraints{oneapi::tbb::task_arena::automatic, count}) {
  if (numa_nodes <= 1 && count > 1) team_.emplace(count);
}

UseThreads::UseThreads(Threads& threads, bool inside) : before_(current), before_inside_(inside_arena) {
  inside_arena = inside || (inside_arena && current == &threads);
  current = &threads;
}
UseThreads::~UseThreads() {
  current = before_;
  inside_arena = before_inside_;
}

void run_inside_erased(Threads& threads, void (*body)(void* self), void* self) {
  const Presence here;
  happens_before(&self);
  threads.arena().execute([&] {
    happens_after(&self);
    UseThreads use(threads, true);
    const AsPresent as(&here);
    body(self);
    happens_before(&self);
  });
  happens_after(&self);
}

bool reference_only() {
  return current != nullptr && current->reference();
}

int thread_count() {
  if (current != nullptr) return current->count();
  // A worker that took a piece of an outer loop: nested loops stay in its arena. Other threads are not in any.
  bool worker = oneapi::tbb::this_task_arena::current_thread_index() != oneapi::tbb::task_arena::not_initialized;
  return worker ? std::max(1, oneapi::tbb::this_task_arena::max_concurrency()) : 1;
}

int thread_index() {
  if (const int place = Team::place(); place >= 0) return place;
  return std::max(0, oneapi::tbb::this_task_arena::current_thread_index());
}

void parallel_erased(int64_t count, int64_t grain, void (*body)(void* self, int64_t begin, int64_t end), void* self) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  int threads = count <= grain ? 1 : thread_count();
  int64_t pieces = std::min(count / grain, threads * kPiecesPerThread);
  if (threads == 1 || pieces <= 1) {
    body(self, 0, count);
    return;
  }
  const Loop whole{count, pieces, body, self};
  // A run that is alone has a team; more share oneTBB's workers, which are as many as the cores, however many ask.
  // Where weights are packed, each loop counts as a run.
  std::optional<Presence> packing;
  if (current != nullptr && presence == nullptr) packing.emplace();
  const AsPresent as(packing ? &*packing : presence);
  if (current != nullptr && presence->alone()) {
    Team* team = current->team();
    if (team != nullptr && team->run(whole, thread_index())) return;
  }
  auto loop = [&] {
    oneapi::tbb::parallel_for(
        int64_t{0}, pieces,
        [&](int64_t piece) {
          happens_after(&pieces);
          whole.run_piece(piece);
          happens_before(&pieces);
        },
        oneapi::tbb::simple_partitioner{});
  };
  // A full arena has one of its own threads begin the loop.
  happens_before(&pieces);
  if (current != nullptr && !inside_arena)
    current->arena().execute(loop);
  else
    loop();
  happens_after(&pieces);
}

}  // namespace backplane::cpu

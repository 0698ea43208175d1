// SPDX-License-Identifier: Apache-2.0
#include "host/threads.h"

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <new>

#include "host/cgroup.h"
#include "host/topology.h"
#include "host/tsan.h"

namespace backplane {
namespace {

constexpr uint32_t kMaxThreads = 4096;
constexpr uint64_t kPiecesPerThread = 4;  // several, so that a slow core does not delay the others

uint32_t usable_processors() {
  const int allowed = std::max(1, oneapi::tbb::info::default_concurrency());
  return std::min(static_cast<uint32_t>(allowed), cgroup_cpu_limit());
}

// One thread per core, because the hardware threads of a core share its arithmetic units. Reads the topology, which
// takes milliseconds, only if cores have several hardware threads.
uint32_t usable_cores() {
  char several = '0';
  std::ifstream("/sys/devices/system/cpu/smt/active") >> several;
  const uint32_t processors = usable_processors();
  if (several != '1') return processors;
  const Result<Topology> topology = Topology::read();
  return topology.ok() ? std::clamp(topology->allowed_cores(), 1u, processors) : processors;
}

oneapi::tbb::task_arena& enqueue_arena() {
  // Never destroyed, because threads may use it while the process exits.
  static auto* const kArena = new oneapi::tbb::task_arena();
  return *kArena;
}

}  // namespace

struct Threads::Arena {
  explicit Arena(uint32_t count) : tasks(static_cast<int>(count)) {}
  oneapi::tbb::task_arena tasks;
};

Threads::Threads(uint32_t count)
    : count_(count ? std::min(count, kMaxThreads) : usable_cores()), arena_(std::make_unique<Arena>(count_)) {}

Threads::~Threads() = default;

void Threads::parallel_for(const bp_loop_t& loop) {
  const uint64_t count = loop.count;
  if (count == 0) return;
  // The lengths of pieces (chunks) differ by at most one, and none is below the grain, unless the loop is. oneTBB's
  // blocked_range, which is halved repeatedly, would not ensure that.
  const uint64_t pieces = std::min(count / std::max<uint64_t>(loop.grain, 1), count_ * kPiecesPerThread);
  const auto worker = [] {
    return static_cast<uint32_t>(std::max(0, oneapi::tbb::this_task_arena::current_thread_index()));
  };
  if (pieces <= 1 || count_ == 1) return loop.body(loop.context, worker() < count_ ? worker() : 0, 0, count);

  const uint64_t length = count / pieces, longer = count % pieces;  // the first `longer` pieces have one more element
  uint64_t started[uint64_t{kMaxThreads} * kPiecesPerThread / 64];  // one bit for each piece
  std::fill_n(started, (pieces + 63) / 64, 0);
  const auto run = [&](uint64_t i) noexcept {  // a body that throws violates the contract
    const uint64_t bit = uint64_t{1} << i % 64;
    if (std::atomic_ref(started[i / 64]).fetch_or(bit, std::memory_order_relaxed) & bit) return;
    const uint64_t begin = i * length + std::min(i, longer);
    loop.body(loop.context, worker() < count_ ? worker() : 0, begin, begin + length + (i < longer ? 1 : 0));
  };
  int start, end;  // only their addresses are used: they announce an order to the thread sanitizer
  happens_before(&start);
  bool is_complete = false;
  try {
    arena_->tasks.execute([&] {
      // Isolated: a thread that waits for an inner loop takes no other piece of this loop. That piece would run with
      // the same worker index as the piece that waits.
      oneapi::tbb::this_task_arena::isolate([&] {
        oneapi::tbb::parallel_for(uint64_t{0}, pieces, [&](uint64_t i) {
          happens_after(&start);
          run(i);
          happens_before(&end);
        });
      });
    });
    is_complete = true;
  } catch (...) {  // oneTBB got no memory or no thread. None of its threads executes a piece any more.
  }
  happens_after(&end);
  for (uint64_t i = 0; i < pieces && !is_complete; ++i) run(i);
}

void prepare_enqueue() {
  enqueue_arena().initialize();
}

void enqueue(void (*work)(void* self), void* self) {
  happens_before(self);
  try {
    enqueue_arena().enqueue([work, self] {
      happens_after(self);
      work(self);
    });
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {  // no thread could be started: the work is in the queue, for a later one
  }
}

}  // namespace backplane

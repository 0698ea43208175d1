// SPDX-License-Identifier: Apache-2.0
// The threads that work on the loops of one run. oneTBB puts workers to sleep between loops, and waking one takes
// longer than most loops of a small model: helpers stay with the run for as long as one loop follows another closely.
#pragma once

#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>

namespace backplane::cpu {

// Helpers that are on their way, at work or about to leave; whoever unloads this code waits until there are none.
using HelperCount = std::atomic<int64_t>;

class Crew {
 public:
  Crew(oneapi::tbb::task_arena& arena, int most_helpers, HelperCount& helpers)
      : arena_(arena), most_helpers_(most_helpers), helpers_(helpers) {}
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Runs body(self, begin, end) over [0, count) in so many pieces, on the calling thread and on whoever helps. Helpers
  // that are late are not waited for. One loop at a time, from the thread that runs.
  struct Loop {
    void (*body)(void* self, int64_t begin, int64_t end);
    void* self;
    int64_t count, pieces;
  };
  void run(const Loop& loop);

 private:
  struct Board;
  struct Helper;
  void call_helpers(int64_t wanted);
  static void help(Board& board);

  oneapi::tbb::task_arena& arena_;
  int64_t most_helpers_;
  HelperCount& helpers_;
  std::shared_ptr<Board> board_;  // from the first loop on
};

// Whether the calling thread works on a piece of a crew's loop: loops within it stay on the thread.
bool works_on_piece();

}  // namespace backplane::cpu

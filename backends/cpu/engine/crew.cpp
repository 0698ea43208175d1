// SPDX-License-Identifier: Apache-2.0
#include "engine/crew.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/tsan.h"

namespace backplane::cpu {

namespace {

using Clock = std::chrono::steady_clock;

// How long a helper stays without work: longer than what one thread does between two loops, shorter than anybody
// notices.
constexpr auto kPatience = std::chrono::microseconds(200);
// Looks at the board between two looks at the clock.
constexpr int kLooks = 64;

thread_local bool working = false;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

}  // namespace

bool works_on_piece() {
  return working;
}

// What the run and its helpers share. Pieces are handed out by counting `left` down: whoever brings it from above 0 to
// i works on piece i of the loop that stands here, which stays until all its pieces are done.
struct Crew::Board {
  alignas(64) std::atomic<int64_t> left = 0;
  Loop loop{};
  alignas(64) std::atomic<int64_t> done = 0;
  std::atomic<int64_t> present = 0;  // helpers called that did not leave
  std::atomic<bool> closed = false;
  std::atomic<bool> failed = false;
  std::exception_ptr failure;  // of the first that failed

  // Works until no piece is left; how many pieces that were.
  int64_t work() {
    int64_t pieces = 0;
    for (; left.load(std::memory_order_relaxed) > 0; ++pieces) {
      const int64_t piece = left.fetch_sub(1, std::memory_order_acquire) - 1;
      if (piece < 0) break;
      happens_after(this);
      const int64_t share = loop.count / loop.pieces, rest = loop.count % loop.pieces;
      const int64_t begin = piece * share + std::min(piece, rest);
      working = true;
      try {
        loop.body(loop.self, begin, begin + share + (piece < rest ? 1 : 0));
      } catch (...) {
        if (!failed.exchange(true)) failure = std::current_exception();
      }
      working = false;
    }
    return pieces;
  }
};

// What a helper's thread does. Nothing of the board is left when it is no longer counted.
struct Crew::Helper {
  mutable std::shared_ptr<Board> board;
  HelperCount* helpers;

  void operator()() const {
    happens_after(helpers);
    help(*board);
    board.reset();
    happens_before(helpers);
    helpers->fetch_sub(1, std::memory_order_release);
  }
};

Crew::~Crew() {
  if (board_) board_->closed.store(true, std::memory_order_release);
}

void Crew::run(const Loop& loop) {
  if (!board_) board_ = std::make_shared<Board>();
  Board& board = *board_;
  board.loop = loop;
  board.done.store(0, std::memory_order_relaxed);
  happens_before(&board);
  board.left.store(loop.pieces, std::memory_order_release);
  call_helpers(std::min(most_helpers_, loop.pieces - 1));
  const int64_t own = board.work();
  // Helpers are in the middle of the last pieces. One that another process holds up gets its core back by the yields.
  for (int looks = 0; board.done.load(std::memory_order_acquire) != loop.pieces - own; ++looks) {
    relax();
    if (looks >= kLooks * kLooks) sched_yield();
  }
  happens_after(&board.done);
  if (board.failed.load(std::memory_order_relaxed)) {
    board.failed.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(board.failure, nullptr));
  }
}

void Crew::call_helpers(int64_t wanted) {
  while (board_->present.load(std::memory_order_relaxed) < wanted) {
    board_->present.fetch_add(1, std::memory_order_relaxed);
    helpers_.fetch_add(1, std::memory_order_relaxed);
    happens_before(&helpers_);
    arena_.enqueue(Helper{board_, &helpers_});
  }
}

void Crew::help(Board& board) {
  Clock::time_point since = Clock::now();
  for (int looks = 0; !board.closed.load(std::memory_order_acquire); ++looks) {
    if (const int64_t pieces = board.work(); pieces > 0) {
      happens_before(&board.done);
      board.done.fetch_add(pieces, std::memory_order_release);
      since = Clock::now();
    }
    relax();
    if (looks % kLooks == 0 && Clock::now() - since > kPatience) break;
  }
  board.present.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
#include "runtime/team.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <csignal>
#include <ctime>
#include <system_error>
#include <utility>

#include "runtime/presence.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

using Clock = std::chrono::steady_clock;

// A caller that waits this long looks whether the helper runs at all. Moving it takes about as long.
constexpr std::chrono::microseconds kPatience{20};
// A thread that runs has used its core when this is over.
constexpr std::chrono::microseconds kLook{4};

// The longest rest, about a turn of the system's. The first is for threads of the system, which take a core for a
// moment: each that follows within kForget lasts twice as long.
constexpr std::chrono::nanoseconds kLongestRest = std::chrono::milliseconds(4);
constexpr std::chrono::nanoseconds kFirstRest = std::chrono::microseconds(125);
constexpr std::chrono::nanoseconds kForget = std::chrono::milliseconds(100);

// Parts of a piece under a watch take about this long.
constexpr std::chrono::milliseconds kPart{1};

thread_local int helper_place = -1;

// About a quarter of a microsecond in which the other hardware thread of this core, if any, can work.
void relax() {
  for (int i = 0; i < 16; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

// That its first thread may use. A caller's own may be fewer: some are pinned to a core, and helpers inherit that.
cpu_set_t cores_of_process() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(getpid(), sizeof cores, &cores) != 0) CPU_ZERO(&cores);
  return cores;
}

int helpers_for(int threads, const cpu_set_t& cores) {
  return std::max(0, std::min(threads, CPU_COUNT(&cores)) - 1);
}

std::chrono::nanoseconds time_on_core(clockid_t thread) {
  timespec time{};
  clock_gettime(thread, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

void Loop::run_piece(int64_t piece) const {
  const int64_t share = count / pieces;
  const int64_t rest = count % pieces;
  const int64_t begin = piece * share + std::min(piece, rest);
  run_part(begin, begin + share + (piece < rest ? 1 : 0));
}

void Loop::run_part(int64_t begin, int64_t end) const {
  if (watch == nullptr) return body(self, begin, end);
  int64_t size = grain;
  for (auto since = Clock::now(); begin < end;) {
    watch->check();
    const int64_t part = std::min(size, end - begin);
    body(self, begin, begin + part);
    begin += part;
    const auto now = Clock::now();
    if (now - since < kPart / 2 && size <= INT64_MAX / 2) size *= 2;
    if (now - since > kPart * 2) size = std::max(grain, size / 2);
    since = now;
  }
}

Team::Team(int threads)
    : seats_(helpers_for(threads, cores_of_process())),
      process_(getpid()),
      helpers_(std::make_unique<Helper[]>(static_cast<size_t>(seats_))),
      shares_(std::make_unique<Share[]>(static_cast<size_t>(seats_) + 1)) {}

Team::~Team() {
  if (getpid() != process_) {  // forked off: the threads are the parent's
    for (int seat = 0; seat < started_; ++seat) helpers_[seat].thread.detach();
    return;
  }
  stop_.store(true);
  for (int seat = 0; seat < started_; ++seat) {
    Helper& helper = helpers_[seat];
    helper.parked.store(0);
    helper.parked.notify_one();
    helper.thread.join();
  }
}

int Team::place() {
  return helper_place;
}

void Team::start() {
  begun_ = true;
  // The application's handlers run on its own threads, but for those of what a thread itself did and of profilers.
  sigset_t others, before;
  sigfillset(&others);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) sigdelset(&others, own);
  pthread_sigmask(SIG_SETMASK, &others, &before);
  try {
    for (; started_ < seats_; ++started_)
      helpers_[started_].thread = std::thread([this, seat = started_] { help(seat); });
  } catch (const std::system_error&) {  // no more threads: those that there are do it
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  for (int seat = 0; seat < started_; ++seat)
    pthread_getcpuclockid(helpers_[seat].thread.native_handle(), &helpers_[seat].clock);
}

bool Team::run(const Loop& loop, int place) {
  if (taken_.exchange(true, std::memory_order_acquire)) return false;
  struct Release {
    std::atomic<bool>& taken;
    ~Release() { taken.store(false, std::memory_order_release); }
  } release{taken_};
  if (!begun_) start();
  if (started_ == 0) return false;

  loop_ = loop;
  place_ = place;
  const int wanted = static_cast<int>(std::min<int64_t>(loop.pieces - 1, started_));
  deal(loop.pieces, wanted + 1);
  wanted_.store(wanted, std::memory_order_release);  // after the last round was closed
  if (const int core = sched_getcpu(); core != core_.load(std::memory_order_relaxed))
    core_.store(core, std::memory_order_relaxed);
  // Here and in `park`: either the helper sees the new round or we see that it is parked. In `take_part`: either it
  // sees the round closed or we see it inside.
  round_.fetch_add(1);
  for (int seat = 0; seat < wanted; ++seat) {
    Helper& helper = helpers_[seat];
    if (helper.parked.load() != 0 && helper.parked.exchange(0) != 0) helper.parked.notify_one();
  }
  work(0);
  round_.fetch_add(1);
  for (int seat = 0; seat < wanted; ++seat) wait_for(helpers_[seat]);

  if (failed_.load(std::memory_order_relaxed)) {
    failed_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
  return true;
}

void Team::deal(int64_t pieces, int threads) {
  dealt_ = threads;
  for (int i = 0; i < threads; ++i) {
    shares_[i].next.store(pieces * i / threads, std::memory_order_relaxed);
    shares_[i].end = pieces * (i + 1) / threads;
  }
}

// First the thread's own share, then what is left of the others'.
void Team::work(int share) {
  try {
    for (int i = 0; i < dealt_; ++i) {
      Share& from = shares_[(share + i) % dealt_];
      for (;;) {
        const int64_t piece = from.next.fetch_add(1, std::memory_order_relaxed);
        if (piece >= from.end) break;
        loop_.run_piece(piece);
      }
    }
  } catch (...) {
    for (int i = 0; i < dealt_; ++i) shares_[i].next.store(shares_[i].end, std::memory_order_relaxed);
    if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
  }
}

void Team::wait_for(Helper& helper) {
  auto since = Clock::time_point::max();
  while (helper.inside.load(std::memory_order_acquire) != 0) {
    relax();
    const auto now = Clock::now();
    since = std::min(since, now);
    if (now - since < kPatience) continue;
    const auto used = time_on_core(helper.clock);
    while (Clock::now() - now < kLook) relax();
    since = Clock::now();
    if (time_on_core(helper.clock) != used) continue;
    cpu_set_t ours;
    CPU_ZERO(&ours);
    CPU_SET(sched_getcpu(), &ours);
    helper.guest.store(true);
    if (pthread_setaffinity_np(helper.thread.native_handle(), sizeof ours, &ours) != 0) continue;
    lent_.fetch_add(1, std::memory_order_relaxed);
    helper.inside.wait(1);
  }
}

void Team::help(int seat) {
  Helper& me = helpers_[seat];
  std::fesetenv(FE_DFL_ENV);
  step_aside(me);
  uint64_t seen = 0;
  auto idle_since = Clock::now();
  while (!stop_.load(std::memory_order_relaxed)) {
    if (me.guest.load(std::memory_order_relaxed)) step_aside(me);
    const uint64_t round = round_.load(std::memory_order_acquire);
    if (round % 2 == 1 && round != seen && seat < wanted_.load(std::memory_order_acquire)) {
      take_part(me, seat, round);
      seen = round;
      idle_since = Clock::now();
      continue;
    }
    relax();
    if (!Presence::crowded() && Clock::now() - idle_since < kStay) continue;
    park(me, round);
    idle_since = Clock::now();
  }
}

void Team::take_part(Helper& me, int seat, uint64_t round) {
  me.inside.store(1);
  if (round_.load() == round) {
    helper_place = seat < place_ ? seat : seat + 1;
    const WorkFor caller(loop_);
    work(seat + 1);
  }
  me.inside.store(0);
  if (me.guest.load()) me.inside.notify_one();
  if (me.guest.load() || sched_getcpu() == core_.load(std::memory_order_relaxed)) step_aside(me);
}

void Team::park(Helper& me, uint64_t round) {
  me.parked.store(1);
  if (round_.load() == round && !stop_.load()) me.parked.wait(1);
  me.parked.store(0, std::memory_order_relaxed);
}

void Team::step_aside(Helper& me) {
  const bool was_guest = me.guest.exchange(false);
  cpu_set_t others = cores_of_process();  // of now: who limits it does not expect us to widen it again
  if (const int core = core_.load(std::memory_order_relaxed); core >= 0) CPU_CLR(core, &others);
  if (CPU_COUNT(&others) != 0) pthread_setaffinity_np(pthread_self(), sizeof others, &others);
  if (was_guest) rest(me);
}

void Team::rest(Helper& me) {
  me.rests = Clock::now() - me.rested < kForget ? me.rests + 1 : 0;
  std::chrono::nanoseconds time = kFirstRest;
  for (int i = 0; i < me.rests && time < kLongestRest; ++i) time *= 2;
  std::this_thread::sleep_for(std::min({time, kLongestRest, time_on_core(CLOCK_THREAD_CPUTIME_ID) - me.worked}));
  me.worked = time_on_core(CLOCK_THREAD_CPUTIME_ID);
  me.rested = Clock::now();
}

}  // namespace backplane::cpu

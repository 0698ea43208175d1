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

#include "runtime/active_run.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

using Clock = std::chrono::steady_clock;

// After waiting this long for a helper, the caller checks whether the helper runs. Moving a helper takes about as long.
constexpr std::chrono::microseconds kPatience{20};
// A helper whose CPU time does not grow within this time counts as not running.
constexpr std::chrono::microseconds kLook{4};

// How long a helper backs off: at first, as long as a system thread typically needs a core. The time doubles if the
// helper backs off again within kForget, up to about one time slice of the system.
constexpr std::chrono::nanoseconds kLongestBackoff = std::chrono::milliseconds(4);
constexpr std::chrono::nanoseconds kFirstBackoff = std::chrono::microseconds(125);
constexpr std::chrono::nanoseconds kForget = std::chrono::milliseconds(100);

// With a watch, each chunk is cut into parts of about this duration.
constexpr std::chrono::milliseconds kPart{1};

thread_local int own_thread_index = -1;

// Pauses for about a quarter of a microsecond, which leaves the core to its other hardware thread.
void relax() {
  for (int i = 0; i < 16; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

// Returns the cores that the process's main thread may use. The calling thread may be pinned to fewer cores, and
// helpers would inherit that.
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

void Loop::run_chunk(int64_t chunk) const {
  const int64_t share = count / chunks;
  const int64_t rest = count % chunks;
  const int64_t begin = chunk * share + std::min(chunk, rest);
  run_part(begin, begin + share + (chunk < rest ? 1 : 0));
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
    : max_helpers_(helpers_for(threads, cores_of_process())),
      process_(getpid()),
      helpers_(std::make_unique<Helper[]>(static_cast<size_t>(max_helpers_))),
      shares_(std::make_unique<Share[]>(static_cast<size_t>(max_helpers_) + 1)) {}

Team::~Team() {
  if (getpid() != process_) {  // in a forked child, these threads exist only in the parent
    for (int index = 0; index < started_; ++index) helpers_[index].thread.detach();
    return;
  }
  stop_.store(true);
  for (int index = 0; index < started_; ++index) {
    Helper& helper = helpers_[index];
    helper.parked.store(0);
    helper.parked.notify_one();
    helper.thread.join();
  }
}

int Team::helper_thread_index() {
  return own_thread_index;
}

void Team::start() {
  is_started_ = true;
  // Helpers block signals, so that the application's handlers run on its own threads. Signals that a thread causes
  // itself are not blocked, nor is SIGPROF, for profilers.
  sigset_t others, before;
  sigfillset(&others);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) sigdelset(&others, own);
  pthread_sigmask(SIG_SETMASK, &others, &before);
  try {
    for (; started_ < max_helpers_; ++started_)
      helpers_[started_].thread = std::thread([this, index = started_] { helper_main(index); });
  } catch (const std::system_error&) {  // the system allows no more threads: continue with fewer
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  for (int index = 0; index < started_; ++index)
    pthread_getcpuclockid(helpers_[index].thread.native_handle(), &helpers_[index].clock);
}

bool Team::run(const Loop& loop, int caller_index) {
  if (taken_.exchange(true, std::memory_order_acquire)) return false;
  struct Release {
    std::atomic<bool>& taken;
    ~Release() { taken.store(false, std::memory_order_release); }
  } release{taken_};
  if (!is_started_) start();
  if (started_ == 0) return false;

  loop_ = loop;
  caller_index_ = caller_index;
  const int wanted = static_cast<int>(std::min<int64_t>(loop.chunks - 1, started_));
  distribute(loop.chunks, wanted + 1);
  wanted_.store(wanted, std::memory_order_release);  // stored after the previous round was closed
  if (const int core = sched_getcpu(); core != core_.load(std::memory_order_relaxed))
    core_.store(core, std::memory_order_relaxed);
  // The atomic operations here and in `park` have one order: either the helper sees the new round, or this thread sees
  // that the helper is parked. Likewise those of `wait_for` and `join_loop`: either the helper sees that the round is
  // closed, or this thread sees the helper inside.
  round_.fetch_add(1);
  for (int index = 0; index < wanted; ++index) {
    Helper& helper = helpers_[index];
    if (helper.parked.load() != 0 && helper.parked.exchange(0) != 0) helper.parked.notify_one();
  }
  work(0);
  round_.fetch_add(1);
  for (int index = 0; index < wanted; ++index) wait_for(helpers_[index]);

  if (failed_.load(std::memory_order_relaxed)) {
    failed_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
  return true;
}

void Team::distribute(int64_t chunks, int threads) {
  share_count_ = threads;
  for (int i = 0; i < threads; ++i) {
    shares_[i].next.store(chunks * i / threads, std::memory_order_relaxed);
    shares_[i].end = chunks * (i + 1) / threads;
  }
}

// Runs the chunks of this thread's own share, then the remaining chunks of the other shares.
void Team::work(int share) {
  try {
    for (int i = 0; i < share_count_; ++i) {
      Share& from = shares_[(share + i) % share_count_];
      for (;;) {
        const int64_t chunk = from.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= from.end) break;
        loop_.run_chunk(chunk);
      }
    }
  } catch (...) {
    for (int i = 0; i < share_count_; ++i) shares_[i].next.store(shares_[i].end, std::memory_order_relaxed);
    if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
  }
}

void Team::wait_for(Helper& helper) {
  auto since = Clock::time_point::max();
  while (helper.inside.load() != 0) {
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
    helper.on_callers_core.store(true);
    if (pthread_setaffinity_np(helper.thread.native_handle(), sizeof ours, &ours) != 0) continue;
    migrations_.fetch_add(1, std::memory_order_relaxed);
    helper.inside.wait(1);
  }
}

void Team::helper_main(int index) {
  Helper& me = helpers_[index];
  std::fesetenv(FE_DFL_ENV);
  leave_callers_core(me);
  uint64_t seen = 0;
  auto idle_since = Clock::now();
  while (!stop_.load(std::memory_order_relaxed)) {
    if (me.on_callers_core.load(std::memory_order_relaxed)) leave_callers_core(me);
    const uint64_t round = round_.load(std::memory_order_acquire);
    if (round % 2 == 1 && round != seen && index < wanted_.load(std::memory_order_acquire)) {
      join_loop(me, index, round);
      seen = round;
      idle_since = Clock::now();
      continue;
    }
    relax();
    if (!ActiveRun::several() && Clock::now() - idle_since < kSpinTime) continue;
    park(me, round);
    idle_since = Clock::now();
  }
}

void Team::join_loop(Helper& me, int index, uint64_t round) {
  me.inside.store(1);
  if (round_.load() == round) {
    own_thread_index = index < caller_index_ ? index : index + 1;
    const WorkFor caller(loop_);
    work(index + 1);
  }
  me.inside.store(0);
  if (me.on_callers_core.load()) me.inside.notify_one();
  if (me.on_callers_core.load() || sched_getcpu() == core_.load(std::memory_order_relaxed)) leave_callers_core(me);
}

void Team::park(Helper& me, uint64_t round) {
  me.parked.store(1);
  if (round_.load() == round && !stop_.load()) me.parked.wait(1);
  me.parked.store(0, std::memory_order_relaxed);
}

void Team::leave_callers_core(Helper& me) {
  const bool was_on_callers_core = me.on_callers_core.exchange(false);
  cpu_set_t others = cores_of_process();  // read again, because the process may have been given other cores
  if (const int core = core_.load(std::memory_order_relaxed); core >= 0) CPU_CLR(core, &others);
  if (CPU_COUNT(&others) != 0) pthread_setaffinity_np(pthread_self(), sizeof others, &others);
  if (was_on_callers_core) back_off(me);
}

void Team::back_off(Helper& me) {
  me.backoffs = Clock::now() - me.last_backoff < kForget ? me.backoffs + 1 : 0;
  std::chrono::nanoseconds time = kFirstBackoff;
  for (int i = 0; i < me.backoffs && time < kLongestBackoff; ++i) time *= 2;
  std::this_thread::sleep_for(std::min({time, kLongestBackoff, time_on_core(CLOCK_THREAD_CPUTIME_ID) - me.worked}));
  me.worked = time_on_core(CLOCK_THREAD_CPUTIME_ID);
  me.last_backoff = Clock::now();
}

}  // namespace backplane::cpu

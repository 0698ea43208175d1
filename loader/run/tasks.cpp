// SPDX-License-Identifier: Apache-2.0
#include "run/tasks.h"

#include <algorithm>
#include <list>

#include "base/forks.h"
#include "host/threads.h"

namespace backplane {
namespace {

std::mutex kept_mutex;
const FreeInChildren<kept_mutex> kFreeInChildren;

}  // namespace

struct TaskGraph::State : std::enable_shared_from_this<State> {
  State(uint32_t count, uint32_t width)
      : after(count), before_count(count), waits_for(count), passed_on(count), helpers_wanted(width - 1) {
    ready.reserve(count);
  }

  // All functions below except `help` must be called with the lock held.

  void finish(uint32_t task, bool failed) {
    --running;
    --left;
    stopped = stopped || failed;
    for (const Next& next : after[task])
      if (!next.in_stream || !passed_on[task]) release(next.task);
    passed_on[task] = 1;
    changed.notify_all();
  }

  // The task is in its stream now, so tasks that follow it by stream order may be started.
  void pass_on(uint32_t task) {
    if (passed_on[task] || by_host) return;
    passed_on[task] = 1;
    for (const Next& next : after[task])
      if (next.in_stream) release(next.task);
  }

  void release(uint32_t task) {
    if (--waits_for[task] == 0) ready.push_back(task);
  }

  bool has_ready() const { return !stopped && !ready.empty(); }
  // A task may end before the call that started it returns. The run waits for that call too.
  bool is_over() const { return starting == 0 && running == 0 && (left == 0 || stopped); }

  // Requests helper threads for ready tasks. If memory for a request is exhausted, the run goes on with the threads
  // that it has.
  void invite() {
    try {
      for (size_t i = 0; i < ready.size() && helpers < helpers_wanted; ++i) {
        if (!entry.empty()) keep();
        enqueue(help, this);
        ++helpers;
      }
    } catch (const std::bad_alloc&) {
      if (entry.empty() && helpers == 0) take_back();
    }
  }

  static void help(void* state) {
    auto& self = *static_cast<State*>(state);
    std::shared_ptr<State> last;  // released after the lock, because the lock is part of the state
    std::unique_lock lock(self.mutex);
    self.work(lock);
    if (--self.helpers == 0) last = self.take_back();
  }

  // Keeps alive the states that have helpers: a helper may start after its graph is destroyed.
  static std::list<std::shared_ptr<State>>& kept() {
    // Never destroyed: a helper may start while the process ends.
    static auto* const kKept = new std::list<std::shared_ptr<State>>;
    return *kKept;
  }

  // The list entry is allocated once and moves between the lists, so that keeping the state allocates nothing.
  void keep() {
    const std::lock_guard lock(kept_mutex);
    entry.front() = shared_from_this();
    kept().splice(kept().end(), entry);
  }

  std::shared_ptr<State> take_back() {
    const std::lock_guard lock(kept_mutex);
    entry.splice(entry.end(), kept(), place);
    return std::move(entry.front());
  }

  void work(std::unique_lock<std::mutex>& lock) {
    while (has_ready()) {
      // The first in the planned order.
      const auto first = std::ranges::min_element(ready);
      const uint32_t task = *first;
      *first = ready.back();
      ready.pop_back();
      ++running;
      ++starting;
      invite();
      lock.unlock();
      const Started started = (*start)(task);
      lock.lock();
      --starting;
      if (started != Started::kPending)
        finish(task, started == Started::kFailed);
      else
        pass_on(task);
      if (is_over()) changed.notify_all();
    }
  }

  struct Next {
    uint32_t task;
    bool in_stream;
  };
  std::vector<std::vector<Next>> after;
  std::vector<uint32_t> before_count;
  uint32_t links = 0;  // the number of tasks t with an order from t directly to t + 1

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<uint32_t> waits_for;
  std::vector<uint8_t> passed_on;  // by task: its successors in streams have been released
  std::vector<uint32_t> ready;
  uint32_t running = 0, starting = 0, left = 0, helpers = 0;
  bool stopped = false, by_host = false;
  const std::function<Started(uint32_t)>* start = nullptr;
  const uint32_t helpers_wanted;
  std::list<std::shared_ptr<State>> entry{1};  // one element: in `kept` while there are helpers, otherwise here
  const std::list<std::shared_ptr<State>>::iterator place = entry.begin();
};

TaskGraph::TaskGraph(uint32_t count, uint32_t width) : state_(std::make_shared<State>(count, std::max(width, 1u))) {
  if (width > 1) prepare_enqueue();
}

TaskGraph::~TaskGraph() = default;

void TaskGraph::order(uint32_t before, uint32_t after, bool in_stream) {
  state_->after[before].push_back({after, in_stream});
  ++state_->before_count[after];
  if (before + 1 == after) ++state_->links;
}

bool TaskGraph::is_chain() const {
  return state_->links + 1 >= state_->after.size();
}

bool TaskGraph::run(const std::function<Started(uint32_t)>& start, const Watch& watch) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.start = &start;
  state.stopped = false;
  state.by_host = watch.by_host;
  std::ranges::fill(state.passed_on, uint8_t{0});
  state.running = 0;
  state.left = static_cast<uint32_t>(state.after.size());
  state.waits_for = state.before_count;
  state.ready.clear();
  for (uint32_t task = 0; task < state.left; ++task)
    if (state.waits_for[task] == 0) state.ready.push_back(task);
  for (;;) {
    state.work(lock);
    if (state.is_over()) break;
    const auto goes_on = [&] { return state.has_ready() || state.is_over(); };
    while (!state.changed.wait_for(lock, watch.slice, goes_on)) {
      watch.poll();
      // A call of `start` that has not returned cannot be abandoned: its thread is inside the plugin.
      if (state.starting != 0 || !watch.must_abandon()) continue;
      state.stopped = true;
      return false;
    }
  }
  state.ready.clear();
  return true;
}

void TaskGraph::wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->running == 0; });
}

void TaskGraph::end(uint32_t task, bool failed) {
  const std::lock_guard lock(state_->mutex);
  state_->finish(task, failed);
}

}  // namespace backplane

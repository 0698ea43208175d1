// SPDX-License-Identifier: Apache-2.0
#include "run/tasks.h"

#include <algorithm>
#include <list>

#include "host/threads.h"

namespace backplane {

struct TaskGraph::State : std::enable_shared_from_this<State> {
  State(uint32_t count, uint32_t width)
      : after(count), before_count(count), waits_for(count), helpers_wanted(width - 1) {
    ready.reserve(count);
  }

  // All below with the lock held.

  void finish(uint32_t task, bool failed) {
    --running;
    --left;
    stopped = stopped || failed;
    for (uint32_t next : after[task])
      if (--waits_for[next] == 0) ready.push_back(next);
    changed.notify_all();
  }

  bool has_ready() const { return !stopped && !ready.empty(); }
  // A task may have ended before the call that started it returns: that call is waited for too.
  bool is_over() const { return starting == 0 && running == 0 && (left == 0 || stopped); }

  // Somebody else may take what this thread will not come to. Where memory is out, this thread does it all.
  void invite() {
    try {
      for (size_t i = 0; i < ready.size() && helpers < helpers_wanted; ++i) {
        if (!entry.empty()) keep();
        enqueue(help, this);
        ++helpers;
      }
    } catch (const std::bad_alloc&) {
      if (entry.empty() && helpers == 0) release();
    }
  }

  static void help(void* state) {
    auto& self = *static_cast<State*>(state);
    std::shared_ptr<State> last;  // ends after the lock
    std::unique_lock lock(self.mutex);
    self.work(lock);
    if (--self.helpers == 0) last = self.release();
  }

  // States whose helpers have not all come: one may come when the graph is gone.
  struct Kept {
    std::mutex mutex;
    std::list<std::shared_ptr<State>> states;
  };
  static Kept& kept() {
    static auto* const kKept = new Kept;  // never ends: a helper may come while the process does
    return *kKept;
  }

  // The entry is made once and moves to and fro: a run allocates nothing.
  void keep() {
    const std::lock_guard lock(kept().mutex);
    entry.front() = shared_from_this();
    kept().states.splice(kept().states.end(), entry);
  }

  std::shared_ptr<State> release() {
    const std::lock_guard lock(kept().mutex);
    entry.splice(entry.end(), kept().states, place);
    return std::move(entry.front());
  }

  // Runs ready tasks until there is none.
  void work(std::unique_lock<std::mutex>& lock) {
    while (has_ready()) {
      // The first in order: what was planned early is wanted early.
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
      if (started != Started::kGoesOn)
        finish(task, started == Started::kFailed);
      else if (is_over())
        changed.notify_all();
    }
  }

  std::vector<std::vector<uint32_t>> after;
  std::vector<uint32_t> before_count;
  uint32_t links = 0;  // between a task and the very next

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<uint32_t> waits_for;
  std::vector<uint32_t> ready;
  uint32_t running = 0, starting = 0, left = 0, helpers = 0;
  bool stopped = false;
  const std::function<Started(uint32_t)>* start = nullptr;
  const uint32_t helpers_wanted;
  std::list<std::shared_ptr<State>> entry{1};  // among those that are kept, while there are helpers; else here
  const std::list<std::shared_ptr<State>>::iterator place = entry.begin();
};

TaskGraph::TaskGraph(uint32_t count, uint32_t width) : state_(std::make_shared<State>(count, std::max(width, 1u))) {
  if (width > 1) prepare_enqueue();
}

TaskGraph::~TaskGraph() = default;

void TaskGraph::order(uint32_t before, uint32_t after) {
  std::vector<uint32_t>& known = state_->after[before];
  if (std::ranges::find(known, after) != known.end()) return;
  known.push_back(after);
  ++state_->before_count[after];
  if (before + 1 == after) ++state_->links;
}

bool TaskGraph::is_chain() const {
  return state_->links + 1 >= state_->after.size();
}

void TaskGraph::run(const std::function<Started(uint32_t)>& start) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.start = &start;
  state.stopped = false;
  state.running = 0;
  state.left = static_cast<uint32_t>(state.after.size());
  state.waits_for = state.before_count;
  state.ready.clear();
  for (uint32_t task = 0; task < state.left; ++task)
    if (state.waits_for[task] == 0) state.ready.push_back(task);
  for (;;) {
    state.work(lock);
    if (state.is_over()) break;
    state.changed.wait(lock, [&] { return state.has_ready() || state.is_over(); });
  }
  state.ready.clear();
}

void TaskGraph::end(uint32_t task, bool failed) {
  const std::lock_guard lock(state_->mutex);
  state_->finish(task, failed);
}

}  // namespace backplane

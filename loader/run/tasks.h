// SPDX-License-Identifier: Apache-2.0
// Tasks that wait for each other. They run on the calling thread and, if several can run at once, also on threads of
// oneTBB.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace backplane {

class TaskGraph {
 public:
  // At most `width` threads start tasks at once, including the caller of `run`. Pending tasks do not count.
  TaskGraph(uint32_t count, uint32_t width);
  ~TaskGraph();
  TaskGraph(const TaskGraph&) = delete;

  // Makes task `after` wait until task `before`, which has a smaller number, has ended or, with `in_stream`, has
  // started, because streams keep their order. Must not be called twice for the same two tasks, or after the first run
  // has started.
  void order(uint32_t before, uint32_t after, bool in_stream = false);
  // Whether only one order of the tasks is possible.
  bool is_chain() const;

  // The result of starting a task; a pending one reports its end later.
  enum class Started { kEnded, kFailed, kPending };
  // Callbacks for the time in which a run waits for pending tasks.
  struct Watch {
    std::function<void()> poll;          // called once per slice
    std::function<bool()> must_abandon;  // called once per slice, unless a call of `start` is in progress
    std::chrono::milliseconds slice{0};
    bool by_host = false;  // true: tasks ordered with `in_stream` wait for the end of their predecessors too
  };
  // Starts each task when its predecessors allow it, and returns when no task is pending. After a failure no further
  // task starts. `start` is called from several threads and must not throw. `end` must be called once for each pending
  // task, from any thread. Returns false if `must_abandon` returned true; some tasks may then still be pending. Makes
  // no heap allocation of its own; helper threads are requested from oneTBB.
  bool run(const std::function<Started(uint32_t task)>& start, const Watch& watch);
  void end(uint32_t task, bool failed);
  // After `run` returned false: waits until no task is pending.
  void wait();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with helper threads that may start after the graph is destroyed
};

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Tasks that wait for each other. They run on the calling thread and, if several can run at once, also on oneTBB's
// threads.
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
  // At most `width` tasks run at once.
  TaskGraph(uint32_t count, uint32_t width);
  ~TaskGraph();
  TaskGraph(const TaskGraph&) = delete;

  // Only before the first run. `before` < `after`: the numbers are an order in which the tasks can run. `in_stream`:
  // `after` may start once `before` was started, because a stream keeps the order.
  void order(uint32_t before, uint32_t after, bool in_stream = false);
  // Whether only one order is possible.
  bool is_chain() const;

  // The result of starting a task; a pending one reports its end later.
  enum class Started { kEnded, kFailed, kPending };
  // Looks after a run while it waits for pending tasks.
  struct Watch {
    std::function<void()> poll;          // called once in every slice
    std::function<bool()> must_abandon;  // likewise, while no call of `start` is under way
    std::chrono::milliseconds slice{0};
    bool by_host = false;  // tasks in a stream wait for each other's end too
  };
  // Starts every task when its predecessors have ended, and returns when no task is pending. After a failure no further
  // task starts. `start` is called from several threads; `end` must be called once for each pending task, from any
  // thread. The result is false if `must_abandon` returned true: then some have not ended. Allocates nothing.
  bool run(const std::function<Started(uint32_t task)>& start, const Watch& watch);
  void end(uint32_t task, bool failed);
  // Waits for the tasks that were pending when `run` returned false.
  void wait();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with helper threads that may start after the graph is destroyed
};

}  // namespace backplane

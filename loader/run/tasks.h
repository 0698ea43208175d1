// SPDX-License-Identifier: Apache-2.0
// Tasks that wait for each other, run on the calling thread and, where several can run at once, on threads of oneTBB
// too.
#pragma once

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

  // Only before the first run. `before` < `after`: the numbers are an order in which the tasks can run. `in_stream`: it
  // is enough that `before` was started, as what both start runs in this order.
  void order(uint32_t before, uint32_t after, bool in_stream = false);
  // Whether there is one order only.
  bool is_chain() const;

  // What a task's start tells.
  enum class Started { kEnded, kFailed, kGoesOn };
  // While the run waits for tasks that go on, every few milliseconds.
  struct Watch {
    std::function<void()> look;
    uint64_t give_up_at = 0;  // ns on the monotonic clock, 0: never
  };
  // Starts every task when those before it have ended, and returns when none goes on. After a failure no further task
  // starts. `start` is called from several threads; of a task that goes on somebody says `end` later, from any thread.
  // With `watch` (may be null) tasks that stand in a stream wait for each other's end too, and false means that some
  // have not ended and were given up. Allocates nothing.
  bool run(const std::function<Started(uint32_t task)>& start, const Watch* watch = nullptr);
  void end(uint32_t task, bool failed);
  // Until the tasks that went on when `run` gave up have ended.
  void wait();

 private:
  struct State;
  std::shared_ptr<State> state_;  // helpers that come late hold it too
};

}  // namespace backplane

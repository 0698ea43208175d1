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

  // Only before the first run. `before` < `after`: the numbers are an order in which the tasks can run.
  void order(uint32_t before, uint32_t after);
  // Whether there is one order only.
  bool is_chain() const;

  // What a task's start tells.
  enum class Started { kEnded, kFailed, kGoesOn };
  // Starts every task when those before it have ended, and returns when none goes on. After a failure no further task
  // starts. `start` is called from several threads; of a task that goes on somebody says `end` later, from any thread.
  // Allocates nothing.
  void run(const std::function<Started(uint32_t task)>& start);
  void end(uint32_t task, bool failed);

 private:
  struct State;
  std::shared_ptr<State> state_;  // helpers that come late hold it too
};

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Threads for tasks that may block. Each running task has its own thread; idle threads are kept for later tasks.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "backplane/host.h"

namespace backplane {

class Workers {
 public:
  Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // Waits for all tasks.
  ~Workers();
  // Throws std::system_error if a needed thread cannot be created; the task does not run then.
  void submit(const bp_task_t& task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<bp_task_t> queue_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool ending_ = false;
  const int owner_;  // process id; a forked child has none of the threads
};

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// A thread that runs one piece of work at a time. Submitted runs wait for semaphores that another submitted run may
// signal: on a pool with a bounded number of threads such waits could fill the pool and hang, so each exec that submits
// has its own thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace backplane {

class Worker {
 public:
  Worker();
  // Waits for the current work.
  ~Worker();
  Worker(const Worker&) = delete;
  // Runs `work` on the thread, after the previous work, which must have ended or be about to. `work` must not throw.
  void post(std::function<void()> work);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// A thread that runs one piece of work at a time. Each exec that submits runs has its own, because a submitted run may
// wait for a semaphore that another submitted run signals. Such waits could block all threads of a pool.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace backplane {

class Worker {
 public:
  Worker();
  // Waits until all posted work has ended.
  ~Worker();
  Worker(const Worker&) = delete;
  // Runs `work`, which must not throw, on the thread after the previous work. Blocks until the previous work has
  // started.
  void post(std::function<void()> work);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool stop_ = false;
  std::thread thread_;  // declared last, because the thread uses the other members
};

}  // namespace backplane

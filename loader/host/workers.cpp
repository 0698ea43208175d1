// SPDX-License-Identifier: Apache-2.0
#include "host/workers.h"

#include <unistd.h>

namespace backplane {

Workers::Workers() : owner_(getpid()) {}

Workers::~Workers() {
  if (owner_ != getpid()) {
    for (std::thread& thread : threads_) thread.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void Workers::submit(const bp_task_t& task) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(task);
  if (queue_.size() <= idle_) return changed_.notify_one();
  try {
    threads_.emplace_back([this] { work(); });
  } catch (...) {
    queue_.pop_back();
    throw;
  }
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (queue_.empty()) {
      if (ending_) return;
      ++idle_;
      changed_.wait(lock);
      --idle_;
    }
    const bp_task_t task = queue_.front();
    queue_.pop_front();
    lock.unlock();
    task.run(task.self);
    lock.lock();
  }
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
#include "run/worker.h"

#include <utility>

namespace backplane {

Worker::Worker() : thread_([this] { loop(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::post(std::function<void()> work) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !work_; });
    work_ = std::move(work);
  }
  changed_.notify_all();
}

void Worker::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return work_ || stop_; });
    if (!work_) return;
    const std::function<void()> work = std::exchange(work_, nullptr);
    lock.unlock();
    changed_.notify_all();
    work();
    lock.lock();
  }
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Runs an initializer exactly once. Concurrent callers block until it finishes; if it throws, the next caller retries.
#pragma once

#include <atomic>
#include <mutex>

namespace backplane::sdk {

// std::call_once specifies the same, but where it is built on a pthread_once that does not support exceptions (under
// the thread sanitizer, for example), an exception leaves the flag locked for ever.
class Once {
 public:
  template <class Work>
  void operator()(Work&& work) {
    if (done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    work();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> done_{false};
};

}  // namespace backplane::sdk

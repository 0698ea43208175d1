// SPDX-License-Identifier: Apache-2.0
// Runs an initializer until it has succeeded once. Concurrent callers block until it finishes. If it throws, the next
// caller runs its own initializer.
#pragma once

#include <atomic>
#include <mutex>

namespace backplane::sdk {

// Replaces std::call_once. Some implementations of that use a pthread_once without exception support (for example under
// ThreadSanitizer), where an exception leaves the flag locked forever.
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

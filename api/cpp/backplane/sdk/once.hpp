// SPDX-License-Identifier: Apache-2.0
// Runs an initializer exactly once. Concurrent callers block until it finishes; if it throws, the next caller retries.
#pragma once

#include <atomic>
#include <mutex>

namespace backplane::sdk {

// std::call_once promises the same, but where it uses a pthread_once without exception support (under ThreadSanitizer,
// for example), an exception leaves the flag locked for ever.
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

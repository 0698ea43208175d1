// SPDX-License-Identifier: Apache-2.0
// Work that is done once, by whoever comes first, while the others wait; where it throws, the next one tries again.
#pragma once

#include <atomic>
#include <mutex>

namespace backplane::opencl {

// std::call_once promises the same, and stays locked after an exception where pthread_once knows none: under the thread
// sanitizer, for one.
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

}  // namespace backplane::opencl

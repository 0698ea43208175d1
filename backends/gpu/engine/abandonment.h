// SPDX-License-Identifier: Apache-2.0
// When a device is abandoned because it does not respond, wakes the threads that wait for it. Outlives the
// device; never reset. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <utility>

#include "backplane/sdk/fence.hpp"

namespace backplane::gpu {

class Abandonment {
 public:
  // While a Waiter exists, `set` calls its `wake` on the thread that abandons the device. Create the Waiter before
  // checking `is_set`: an earlier `set` wakes no one. `wake` must not throw or wait for the device. `wake` must lock
  // the mutex that the waiting thread holds while it checks `is_set`; otherwise that thread could miss the wake-up
  // between the check and its wait. Do not destroy the Waiter while holding that mutex.
  class Waiter {
   public:
    Waiter(Abandonment& abandonment, std::function<void()> wake) : abandonment_(abandonment) {
      const std::lock_guard lock(abandonment_.mutex_);
      place_ = abandonment_.wakes_.insert(abandonment_.wakes_.end(), std::move(wake));
    }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter() {
      const std::lock_guard lock(abandonment_.mutex_);
      abandonment_.wakes_.erase(place_);
    }

   private:
    Abandonment& abandonment_;
    std::list<std::function<void()>>::iterator place_;
  };

  void set() noexcept {
    is_set_ = true;
    const std::lock_guard lock(mutex_);
    for (const auto& wake : wakes_) wake();
  }
  const std::atomic<bool>& is_set() const { return is_set_; }
  // Throws if the device was abandoned.
  void check() const {
    if (is_set_) throw sdk::Error::device_lost("the device was abandoned because it did not respond; open it again");
  }

 private:
  std::atomic<bool> is_set_{false};
  std::mutex mutex_;
  std::list<std::function<void()>> wakes_;
};

}  // namespace backplane::gpu

// SPDX-License-Identifier: Apache-2.0
// Mutexes of the whole process, and forks.
#pragma once

#include <pthread.h>

#include <mutex>

namespace backplane {

// Makes forks wait until `kMutex` is free, so that it is free in the child too, which has no thread that would unlock
// it. Call this before locking the mutex; only the first call has an effect. Only for mutexes that are held briefly,
// without locking another one.
template <std::mutex& kMutex>
void free_in_children() {
  [[maybe_unused]] static const int kRegistered =
      ::pthread_atfork([] { kMutex.lock(); }, [] { kMutex.unlock(); }, [] { kMutex.unlock(); });
}

}  // namespace backplane

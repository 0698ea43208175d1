// SPDX-License-Identifier: Apache-2.0
// Mutexes of the whole process, and forks.
#pragma once

#include <pthread.h>

#include <mutex>

namespace backplane {

// Makes forks wait until `kMutex` is free, so that it is free in the child too, which has no thread that would unlock
// it. Define one next to the mutex, at namespace scope: it must exist before the mutex is used, and the first use may
// coincide with a fork. Only for mutexes that are held briefly, without locking another one.
template <std::mutex& kMutex>
class FreeInChildren {
 public:
  FreeInChildren() {
    ::pthread_atfork([] { kMutex.lock(); }, [] { kMutex.unlock(); }, [] { kMutex.unlock(); });
  }
};

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Keeps mutexes of the whole process usable in forked children.
#pragma once

#include <pthread.h>

#include <mutex>

namespace backplane {

// Makes each fork wait until `kMutex` is free. Otherwise the child could inherit a locked mutex, but not the thread
// that would unlock it. Define an object next to the mutex, at namespace scope, so that it exists before the mutex is
// used: the first use may coincide with a fork. Only for mutexes that are held briefly, by code that locks no other
// mutex meanwhile.
template <std::mutex& kMutex>
class FreeInChildren {
 public:
  FreeInChildren() {
    ::pthread_atfork([] { kMutex.lock(); }, [] { kMutex.unlock(); }, [] { kMutex.unlock(); });
  }
};

}  // namespace backplane

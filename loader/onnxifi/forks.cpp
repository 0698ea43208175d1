// SPDX-License-Identifier: Apache-2.0
#include "onnxifi/forks.h"

#include <pthread.h>

#include <atomic>

namespace backplane::onnxifi {
namespace {

std::mutex mutex;
std::atomic<bool> is_used{false}, is_child{false};

void unlock() {
  mutex.unlock();
}
void unlock_in_child() {
  is_child = is_used.load();
  mutex.unlock();
}
// Registered when the library is loaded: its first use may coincide with a fork.
[[maybe_unused]] const int kRegistered = pthread_atfork([] { mutex.lock(); }, unlock, unlock_in_child);

}  // namespace

void start_use() {
  if (is_used) return;
  const std::lock_guard lock(mutex);
  is_used = true;
}

bool is_forked() {
  return is_child;
}

std::mutex& handles_mutex() {
  return mutex;
}

}  // namespace backplane::onnxifi

// SPDX-License-Identifier: Apache-2.0
#include "onnxifi/forks.h"

#include <pthread.h>
#include <unistd.h>

namespace backplane::onnxifi {
namespace {

pid_t start_watching() {
  const auto unlock = [] { handles_mutex().unlock(); };
  pthread_atfork([] { handles_mutex().lock(); }, unlock, unlock);
  return getpid();
}

}  // namespace

bool is_forked() {
  static const pid_t kProcess = start_watching();
  return getpid() != kProcess;
}

std::mutex& handles_mutex() {
  static auto* const kMutex = new std::mutex;  // never destroyed, like the tables of handles
  return *kMutex;
}

}  // namespace backplane::onnxifi

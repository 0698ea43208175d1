// SPDX-License-Identifier: Apache-2.0
#include "c_api/fork.h"

#include <pthread.h>

#include <atomic>

namespace backplane::c_api {
namespace {

std::atomic<uint32_t> current{0};
// Registered when the library is loaded: the first use of a handle may coincide with a fork.
[[maybe_unused]] const int kRegistered =
    pthread_atfork(nullptr, nullptr, [] { current.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

uint32_t generation() {
  return current.load(std::memory_order_relaxed);
}

}  // namespace backplane::c_api

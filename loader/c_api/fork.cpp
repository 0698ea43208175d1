// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <atomic>

#include "c_api/fence.h"

namespace backplane::c_api {
namespace {

std::atomic<uint32_t> current{0};

}  // namespace

uint32_t generation() {
  [[maybe_unused]] static const int kRegistered =
      pthread_atfork(nullptr, nullptr, [] { current.fetch_add(1, std::memory_order_relaxed); });
  return current.load(std::memory_order_relaxed);
}

}  // namespace backplane::c_api

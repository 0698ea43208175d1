// SPDX-License-Identifier: Apache-2.0
#include "engine/fence.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace backplane::cpu {

bp_status_t report(bp_error_t* error, bp_status_t status, std::string_view text, uint64_t node) noexcept {
  if (error == nullptr || error->size < BP_SIZE_1_0(bp_error_t)) return status;
  error->status = status;
  error->node = node;
  error->vendor_code = 0;
  error->flags = 0;
  error->text_size = text.size();
  if (error->text != nullptr)
    std::memcpy(error->text, text.data(), std::min<uint64_t>(text.size(), error->text_capacity));
  return status;
}

uint32_t fork_generation() noexcept {
  static std::atomic<uint32_t> generation{0};
  static const int kRegistered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(kRegistered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace backplane::cpu

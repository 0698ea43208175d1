// SPDX-License-Identifier: Apache-2.0
#include "base/keep.h"

#include <atomic>
#include <cstddef>
#include <list>
#include <mutex>
#include <new>
#include <utility>

#include "base/forks.h"

namespace backplane {
namespace {

std::mutex mutex;
const FreeInChildren<mutex> kFreeInChildren;

constexpr size_t kReserve = 64 << 10;
alignas(std::max_align_t) std::byte reserve[kReserve];
std::atomic<size_t> taken{0};

}  // namespace

void* take_reserve(size_t bytes) noexcept {
  bytes = (bytes + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);
  size_t begin = taken;
  do {
    if (bytes > kReserve - begin) return nullptr;
  } while (!taken.compare_exchange_weak(begin, begin + bytes));
  return reserve + begin;
}

void keep_for_good(std::shared_ptr<const void> object) noexcept try {
  const std::lock_guard lock(mutex);
  static auto* const kKept = new std::list<std::shared_ptr<const void>>;
  kKept->push_back(object);
} catch (const std::bad_alloc&) {
  leak(std::move(object));
}

}  // namespace backplane

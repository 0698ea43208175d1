// SPDX-License-Identifier: Apache-2.0
#include "base/keep.h"

#include <list>
#include <mutex>
#include <new>
#include <utility>

#include "base/forks.h"

namespace backplane {
namespace {

std::mutex mutex;
const FreeInChildren<mutex> kFreeInChildren;

}  // namespace

void keep_for_good(std::shared_ptr<const void> object) noexcept try {
  const std::lock_guard lock(mutex);
  static auto* const kKept = new std::list<std::shared_ptr<const void>>;
  kKept->push_back(object);
} catch (const std::bad_alloc&) {
  leak(std::move(object));
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
#include "base/keep.h"

#include <list>
#include <mutex>
#include <utility>

namespace backplane {

void keep_for_good(std::shared_ptr<const void> object) {
  static std::mutex mutex;
  static auto* const kKept = new std::list<std::shared_ptr<const void>>;
  const std::lock_guard lock(mutex);
  kKept->push_back(std::move(object));
}

}  // namespace backplane

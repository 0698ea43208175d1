// SPDX-License-Identifier: Apache-2.0
#include "engine/captures.h"

#include <algorithm>

namespace backplane::gpu {

const DeviceCapture* Captures::find(const Key& key, const std::function<Capture()>& make) {
  if (disabled_) return nullptr;
  const auto known = std::ranges::find(entries_, key, &Entry::key);
  if (known == entries_.end()) {
    entries_.push_front({key, nullptr});
    if (entries_.size() > kKept) entries_.pop_back();
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, known);
  Entry& entry = entries_.front();
  if (entry.capture == nullptr) {
    try {
      entry.capture = make();
    } catch (...) {
      disable();
      throw;
    }
  }
  return entry.capture.get();
}

}  // namespace backplane::gpu

// SPDX-License-Identifier: Apache-2.0
// The opaque handles of one kind of object. A handle is a number that is never used again, so a stale, foreign or NULL
// handle is recognized and not dereferenced. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "onnxifi/forks.h"

namespace backplane::onnxifi {

// Returns a handle that no object of any kind has had before in this process.
inline void* next_handle() {
  static std::atomic<uintptr_t> last{0};
  return reinterpret_cast<void*>((last.fetch_add(1, std::memory_order_relaxed) + 1) << 4);
}

template <class T>
class Handles {
 public:
  void* add(std::shared_ptr<T> object) {
    void* const handle = next_handle();
    const std::lock_guard lock(handles_mutex());
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  // NULL if the handle was never valid for this kind of object, or is no longer valid.
  std::shared_ptr<T> find(void* handle) const {
    const std::lock_guard lock(handles_mutex());
    const auto at = objects_.find(handle);
    return at == objects_.end() ? nullptr : at->second;
  }
  // Removes and returns the object, or NULL if `find` would. The handle is invalid afterwards.
  std::shared_ptr<T> remove(void* handle) {
    const std::lock_guard lock(handles_mutex());
    const auto node = objects_.extract(handle);
    return node.empty() ? nullptr : std::move(node.mapped());
  }

 private:
  std::unordered_map<void*, std::shared_ptr<T>> objects_;
};

}  // namespace backplane::onnxifi

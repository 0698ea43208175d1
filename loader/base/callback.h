// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <utility>

namespace backplane {

// Runs the bodies of the callbacks that a plugin calls during one call into it, so that no exception reaches the
// plugin. Keeps the first exception, such as std::bad_alloc, and ignores later callbacks. Once the plugin's function
// has returned, `rethrow` throws the kept exception, if there is one. Not thread-safe: callbacks run one at a time.
class CallbackGuard {
 public:
  template <class Body>
  void run(Body&& body) noexcept {
    if (thrown_) return;
    try {
      body();
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }
  bool failed() const { return thrown_ != nullptr; }
  void rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  std::exception_ptr thrown_;
};

}  // namespace backplane

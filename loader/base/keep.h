// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <new>
#include <utility>

namespace backplane {

// Never destroys the object. Needs no memory.
template <class T>
void leak(T object) noexcept {
  union Leaked {
    explicit Leaked(T&& what) : value(std::move(what)) {}
    ~Leaked() {}
    T value;
  };
  [[maybe_unused]] const Leaked leaked(std::move(object));
}

// Keeps an object alive forever, for memory that an abandoned device may still use. Leak checkers see it as reachable,
// unless there was no memory to remember it. Thread-safe.
void keep_for_good(std::shared_ptr<const void> object) noexcept;

// The same for an object that no std::shared_ptr owns, such as a handle of a plugin or a std::unique_ptr.
template <class T>
void keep_value_for_good(T object) noexcept {
  try {
    keep_for_good(std::make_shared<const T>(std::move(object)));
  } catch (const std::bad_alloc&) {
    leak(std::move(object));
  }
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace backplane {

// Returns `bytes` bytes, aligned for any fundamental type, that are never freed. They are taken from 64 KiB of the
// loader's static data, so this works without free memory; nullptr if too few are left. Thread-safe.
void* take_reserve(size_t bytes) noexcept;

// Keeps the object forever: its destructor never runs. Allocates no memory. Leak checkers see the object as reachable,
// unless the reserve of take_reserve() has too little room for it.
template <class T>
void leak(T object) noexcept {
  static_assert(alignof(T) <= alignof(std::max_align_t));
  union Leaked {
    explicit Leaked(T&& what) : value(std::move(what)) {}
    ~Leaked() {}
    T value;
  };
  void* const reserve = take_reserve(sizeof(Leaked));
  alignas(Leaked) std::byte own[sizeof(Leaked)];
  new (reserve ? reserve : own) Leaked(std::move(object));
}

// Keeps an object alive forever, for memory that an abandoned device may still use. Leak checkers see it as reachable,
// as for `leak`. Thread-safe.
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

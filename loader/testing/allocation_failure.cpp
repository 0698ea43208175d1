// SPDX-License-Identifier: Apache-2.0
#include "testing/allocation_failure.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace backplane {

constinit thread_local int64_t until_failure = -1;
constinit thread_local bool no_memory = false;
constinit thread_local uint64_t allocations = 0;

}  // namespace backplane

namespace {

using namespace backplane;

void* allocate(size_t size, size_t alignment) {
  ++allocations;
  if (no_memory) return nullptr;
  if (until_failure == 0) {
    until_failure = -1;
    return nullptr;
  }
  if (until_failure > 0) --until_failure;
  if (size == 0) size = 1;
  return alignment <= alignof(std::max_align_t)
             ? std::malloc(size)
             : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(size_t size, size_t alignment) {
  if (void* memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t size) {
  return allocate_or_throw(size, 1);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

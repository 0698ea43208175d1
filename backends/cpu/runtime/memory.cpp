// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace backplane::cpu {

namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kOwnPages = int64_t{128} << 10;  // bytes from which the rest of a last page is little

bool wants_huge_pages(int64_t bytes) {
  return bytes >= 2 * kHugePage;
}

// The address sanitizer watches the ends of the allocator's blocks alone.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMayMap = false;
#else
constexpr bool kMayMap = true;
#endif

}  // namespace

void BlockDelete::operator()(std::byte* memory) const {
  if (mapped == 0)
    std::free(memory);
  else
    munmap(memory, mapped);
}

Block allocate(int64_t bytes) {
  const bool huge = wants_huge_pages(bytes);
  const int64_t alignment = huge ? kHugePage : kAlignment;
  const auto size = static_cast<size_t>(align_up(bytes > 0 ? bytes : 1, alignment));
  Block block(static_cast<std::byte*>(std::aligned_alloc(static_cast<size_t>(alignment), size)));
  if (!block) throw std::bad_alloc();
  if (huge) madvise(block.get(), size, MADV_HUGEPAGE);  // a wish: refusing it costs nothing
  return block;
}

Block allocate_pages(int64_t bytes) {
  if (bytes < kOwnPages || !kMayMap) return allocate(bytes);
  const auto size = static_cast<size_t>(align_up(bytes, sysconf(_SC_PAGESIZE)));
  const size_t more = wants_huge_pages(bytes) ? kHugePage : 0;  // to begin at a huge page
  void* mapping = mmap(nullptr, size + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return allocate(bytes);
  auto* memory = static_cast<std::byte*>(mapping);
  if (more != 0) {
    const size_t before = -reinterpret_cast<uintptr_t>(memory) % kHugePage;
    if (before != 0) munmap(memory, before);
    memory += before;
    if (before != more) munmap(memory + size, more - before);
    madvise(memory, size, MADV_HUGEPAGE);
  }
  return Block(memory, BlockDelete{size});
}

}  // namespace backplane::cpu

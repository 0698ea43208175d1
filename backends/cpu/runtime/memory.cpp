// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "backplane/sdk/fence.hpp"
#include "runtime/budget.h"
#include "runtime/shape.h"
#include "runtime/thread_state.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
// Smallest block with its own mapping: the unused part of its last page is small in comparison.
constexpr int64_t kOwnPages = int64_t{128} << 10;

bool wants_huge_pages(int64_t bytes) {
  return bytes >= 2 * kHugePage;
}

// No process can address more bytes. A size up to this limit can be rounded up to whole pages without overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 56;

[[noreturn]] void throw_no_memory(int64_t bytes) {
  throw sdk::Error(BP_RESOURCE_EXHAUSTED, "there is not enough memory for " + std::to_string(bytes) + " bytes");
}

// Charges bytes to the calling thread's budget. The destructor releases them, unless `into` passed them to a block.
class Charge {
 public:
  explicit Charge(int64_t bytes) : budget_(thread_state().budget), bytes_(bytes) {
    if (bytes < 0 || bytes > kMaxBytes) throw_no_memory(bytes);
    if (budget_ != nullptr) budget_->reserve(bytes);
  }
  ~Charge() {
    if (budget_ != nullptr) budget_->release(bytes_);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  Block into(std::byte* memory, size_t mapped) {
    return Block(memory, BlockDelete{mapped, std::exchange(budget_, nullptr), bytes_});
  }

 private:
  Budget* budget_;
  int64_t bytes_;
};

// The address sanitizer detects overruns only of blocks from the allocator.
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
  if (budget != nullptr) budget->release(bytes);
}

Block allocate(int64_t bytes) {
  Charge charge(bytes);
  const bool huge = wants_huge_pages(bytes);
  const int64_t alignment = huge ? kHugePage : kAlignment;
  const auto size = static_cast<size_t>(align_up(bytes > 0 ? bytes : 1, alignment));
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(static_cast<size_t>(alignment), size));
  if (memory == nullptr) throw_no_memory(bytes);
  if (huge) madvise(memory, size, MADV_HUGEPAGE);  // a hint, which the system may ignore
  return charge.into(memory, 0);
}

Block allocate_pages(int64_t bytes) {
  if (bytes < kOwnPages || bytes > kMaxBytes || !kMayMap) return allocate(bytes);
  Charge charge(bytes);
  const auto size = static_cast<size_t>(align_up(bytes, sysconf(_SC_PAGESIZE)));
  const size_t more = wants_huge_pages(bytes) ? kHugePage : 0;  // room to align the start to a huge page
  void* mapping = mmap(nullptr, size + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw_no_memory(bytes);
  auto* memory = static_cast<std::byte*>(mapping);
  if (more != 0) {
    const size_t before = -reinterpret_cast<uintptr_t>(memory) % kHugePage;
    if (before != 0) munmap(memory, before);
    memory += before;
    if (before != more) munmap(memory + size, more - before);
    madvise(memory, size, MADV_HUGEPAGE);
  }
  return charge.into(memory, size);
}

void require_memory(int64_t count, int64_t element_bytes) {
  const int64_t bytes = product({count, element_bytes});
  if (bytes > kMaxBytes) throw_no_memory(bytes);
  if (const Budget* budget = thread_state().budget; budget != nullptr) budget->check(bytes);
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
#include "host/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "base/abi.h"
#include "base/file_limit.h"
#include "base/forks.h"

namespace backplane {
namespace {

// Creates a file in memory with `bytes` zeros and a fixed size. Returns its descriptor, or -1.
int sealed_file(off_t bytes) {
  const FileLimitFails limit;
  int file = memfd_create("backplane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  if (file <= STDERR_FILENO) {  // what other code prints must not end up in it
    const int standard = std::exchange(file, fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    close(standard);
    if (file < 0) return -1;
  }
  if (ftruncate(file, bytes) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    return file;
  close(file);
  return -1;
}

std::mutex mutex;  // guards the map below
const FreeInChildren<mutex> kFreeInChildren;
std::atomic<size_t> count{0};  // the number of blocks; lets processes without blocks skip the lock

// All blocks of this process, by address. Never destroyed, because threads may outlive static objects.
std::map<uintptr_t, SharedBlock>& blocks() {
  static auto& all = *new std::map<uintptr_t, SharedBlock>;
  return all;
}

bp_status_t allocate(const bp_host_t*, uint64_t bytes, bp_draft_shared_t* out_shared) {
  const auto block = allocate_shared(bytes);
  if (!block) return BP_RESOURCE_EXHAUSTED;
  bp_draft_shared_t shared{};
  shared.bytes = block->bytes;
  shared.descriptor = block->descriptor;
  shared.address = block->address;
  if (abi::write(shared, out_shared, "out_shared").ok()) return BP_OK;
  release_shared(block->address);
  return BP_INVALID_ARGUMENT;
}

void release(const bp_host_t*, const bp_draft_shared_t* shared) {
  if (shared == nullptr || shared->size < sizeof *shared || shared->address == nullptr) return;
  release_shared(shared->address);
}

}  // namespace

std::optional<SharedBlock> allocate_shared(uint64_t bytes) {
  static std::atomic<uint64_t> last{0};
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes > static_cast<uint64_t>(std::numeric_limits<off_t>::max()) - page) return std::nullopt;
  SharedBlock block;
  block.bytes = std::max(page, (bytes + page - 1) / page * page);
  block.descriptor = sealed_file(static_cast<off_t>(block.bytes));
  if (block.descriptor < 0) return std::nullopt;
  block.address = mmap(nullptr, block.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, block.descriptor, 0);
  if (block.address == MAP_FAILED) {
    close(block.descriptor);
    return std::nullopt;
  }
  block.id = ++last;
  try {
    const std::lock_guard lock(mutex);
    blocks().emplace(reinterpret_cast<uintptr_t>(block.address), block);
    ++count;
  } catch (const std::bad_alloc&) {  // must not reach plugins, which call this through a C function
    munmap(block.address, block.bytes);
    close(block.descriptor);
    return std::nullopt;
  }
  return block;
}

bool release_shared(void* address) {
  if (count.load(std::memory_order_acquire) == 0) return false;
  SharedBlock block;
  {
    const std::lock_guard lock(mutex);
    const auto found = blocks().find(reinterpret_cast<uintptr_t>(address));
    if (found == blocks().end()) return false;
    block = found->second;
    blocks().erase(found);
    --count;
  }
  munmap(block.address, block.bytes);
  close(block.descriptor);
  return true;
}

std::optional<SharedRange> find_shared(const void* address, uint64_t bytes) {
  if (count.load(std::memory_order_acquire) == 0) return std::nullopt;
  const std::lock_guard lock(mutex);
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto found = blocks().upper_bound(at);
  if (found == blocks().begin()) return std::nullopt;
  const SharedBlock& block = (--found)->second;
  const uint64_t offset = at - found->first;
  if (offset > block.bytes || bytes > block.bytes - offset) return std::nullopt;
  const int copy = fcntl(block.descriptor, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return std::nullopt;
  return SharedRange{block.id, copy, offset};
}

bool overlaps_shared(const void* address, uint64_t bytes) {
  if (bytes == 0 || count.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(mutex);
  const auto at = reinterpret_cast<uintptr_t>(address);
  const uintptr_t last = bytes - 1 > UINTPTR_MAX - at ? UINTPTR_MAX : at + (bytes - 1);
  auto found = blocks().upper_bound(last);  // the block before it begins at or before the last byte
  if (found == blocks().begin()) return false;
  --found;
  return at < found->first + found->second.bytes;
}

const bp_draft_shared_memory_api_t* shared_memory_api() {
  static constexpr bp_draft_shared_memory_api_t kApi = {
      .size = sizeof(bp_draft_shared_memory_api_t), .allocate = allocate, .release = release};
  return &kApi;
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
#include "host/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/abi.h"

namespace backplane {
namespace {

// A file of `bytes` zeros in memory that keeps its size, or -1.
int sealed_file(off_t bytes) {
  const int file = memfd_create("backplane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  if (ftruncate(file, bytes) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    return file;
  close(file);
  return -1;
}

bp_status_t allocate(const bp_host_t*, uint64_t bytes, bp_draft_shared_t* out_shared) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes > static_cast<uint64_t>(std::numeric_limits<off_t>::max()) - page) return BP_RESOURCE_EXHAUSTED;
  const uint64_t whole = std::max(page, (bytes + page - 1) / page * page);
  bp_draft_shared_t shared{};
  shared.bytes = whole;
  shared.descriptor = sealed_file(static_cast<off_t>(whole));
  if (shared.descriptor < 0) return BP_RESOURCE_EXHAUSTED;
  shared.address = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, shared.descriptor, 0);
  const bool mapped = shared.address != MAP_FAILED;
  if (mapped && abi::write(shared, out_shared, "out_shared").ok()) return BP_OK;
  if (mapped) munmap(shared.address, whole);
  close(shared.descriptor);
  return mapped ? BP_INVALID_ARGUMENT : BP_RESOURCE_EXHAUSTED;
}

void release(const bp_host_t*, const bp_draft_shared_t* shared) {
  if (shared == nullptr || shared->size < sizeof *shared || shared->address == nullptr) return;
  munmap(shared->address, shared->bytes);
  close(shared->descriptor);
}

}  // namespace

const bp_draft_shared_memory_api_t* shared_memory_api() {
  static constexpr bp_draft_shared_memory_api_t kApi = {
      .size = sizeof(bp_draft_shared_memory_api_t), .allocate = allocate, .release = release};
  return &kApi;
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Blocks of host memory that other processes can map, and the draft extension that offers them to backends.
#pragma once

#include <cstdint>
#include <optional>

#include "backplane/ext/draft/shared_memory.h"

namespace backplane {

const bp_draft_shared_memory_api_t* shared_memory_api();

// A block of shared memory, mapped into this process. It is page-aligned and initially zero, and its size is fixed.
struct SharedBlock {
  uint64_t id = 0;  // unique in this process
  int descriptor = -1;
  void* address = nullptr;
  uint64_t bytes = 0;  // a multiple of the page size
};

// nullopt if the system has no memory or descriptors left.
std::optional<SharedBlock> allocate_shared(uint64_t bytes);
// Frees the block that starts at `address`. Returns false if there is none.
bool release_shared(void* address);

// A range of bytes in a block.
struct SharedRange {
  uint64_t block = 0;
  int descriptor = -1;  // a copy of the block's descriptor; the caller owns it
  uint64_t offset = 0;  // in bytes, from the start of the block
};
// nullopt if the bytes do not all lie in one block, or its descriptor cannot be duplicated. The block must not be
// released during the call.
std::optional<SharedRange> find_shared(const void* address, uint64_t bytes);
// Whether any of the bytes lie in a block, so that another process may change them at any time.
bool overlaps_shared(const void* address, uint64_t bytes);

}  // namespace backplane

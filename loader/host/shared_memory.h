// SPDX-License-Identifier: Apache-2.0
// Host memory that other processes can map: blocks, the draft extension's table, and the search for the block that
// contains an address.
#pragma once

#include <cstdint>
#include <optional>

#include "backplane/ext/draft/shared_memory.h"

namespace backplane {

const bp_draft_shared_memory_api_t* shared_memory_api();

// A block of shared memory, mapped into this process: page-aligned, zeroed at first. Its file's size is fixed.
struct SharedBlock {
  uint64_t id = 0;  // unique in this process
  int descriptor = -1;
  void* address = nullptr;
  uint64_t bytes = 0;  // a multiple of the page size
};

// Nullopt if the system has no more memory or descriptors.
std::optional<SharedBlock> allocate_shared(uint64_t bytes);
// Frees the block that starts at `address`; false if there is none.
bool release_shared(void* address);

// A part of a block.
struct SharedRange {
  uint64_t block = 0;   // the block's id
  int descriptor = -1;  // a copy, owned by the caller
  uint64_t offset = 0;  // offset in the block
};
// Nullopt unless one block contains all of the bytes. The block must not be released during the call.
std::optional<SharedRange> find_shared(const void* address, uint64_t bytes);

}  // namespace backplane

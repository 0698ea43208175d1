// SPDX-License-Identifier: Apache-2.0
// Host memory that other processes can map: blocks, the table of the draft extension, and which block an address lies
// in.
#pragma once

#include <cstdint>
#include <optional>

#include "backplane/ext/draft/shared_memory.h"

namespace backplane {

const bp_draft_shared_memory_api_t* shared_memory_api();

// A block in memory of this process, at least page-aligned and zeroed. The file keeps its size.
struct SharedBlock {
  uint64_t id = 0;  // unique in this process
  int descriptor = -1;
  void* address = nullptr;
  uint64_t bytes = 0;  // a multiple of the page size
};

// None where the system has no more memory or descriptors.
std::optional<SharedBlock> allocate_shared(uint64_t bytes);
// The block that starts at `address`; false where there is none.
bool release_shared(void* address);

// A part of a block.
struct SharedRange {
  uint64_t block = 0;   // its id
  int descriptor = -1;  // a copy, owned by the caller
  uint64_t offset = 0;  // in the block
};
// Found if all of the bytes are in one block. The block must not be released meanwhile.
std::optional<SharedRange> find_shared(const void* address, uint64_t bytes);

}  // namespace backplane

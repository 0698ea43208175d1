// SPDX-License-Identifier: Apache-2.0
// The limit on the memory of values whose size a small file, or a declaration alone, can make very large.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace backplane::tools {

// Half of this machine's memory, in bytes.
inline uint64_t most_value_bytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 2;
}

}  // namespace backplane::tools

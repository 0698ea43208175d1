// SPDX-License-Identifier: Apache-2.0
// Makes operator new fail, but only in the thread that sets these variables. The client, loader and backends share the
// operator.
#pragma once

#include <cstdint>

namespace backplane {

extern constinit thread_local int64_t until_failure;  // allocations that succeed before one fails; negative: none fails
extern constinit thread_local bool no_memory;         // all fail
extern constinit thread_local uint64_t allocations;   // since the thread started

}  // namespace backplane

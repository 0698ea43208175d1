// SPDX-License-Identifier: Apache-2.0
// Makes calls of operator new fail, in this thread only. The client, the loader and the backends share the operator.
#pragma once

#include <cstdint>

namespace backplane {

extern constinit thread_local int64_t until_failure;  // allocations that succeed before one fails; negative: none fails
extern constinit thread_local bool no_memory;         // all fail
extern constinit thread_local uint64_t allocations;   // since the thread started

}  // namespace backplane

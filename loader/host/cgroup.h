// SPDX-License-Identifier: Apache-2.0
// The limits of the process's control groups: containers limit memory and processors without hiding the machine's.
#pragma once

#include <cstdint>

namespace backplane {

// Bytes, UINT64_MAX when unbounded.
uint64_t cgroup_memory_limit();
// Processors, rounded up; UINT32_MAX when unbounded.
uint32_t cgroup_cpu_limit();

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// The limits of the process's control groups. A container limits memory and processors, but still shows those of the
// machine.
#pragma once

#include <cstdint>

namespace backplane {

// In bytes. Without a limit: UINT64_MAX or, with version 1 of control groups, another number far above any memory.
uint64_t cgroup_memory_limit();
// In processors, rounded up; UINT32_MAX: no limit.
uint32_t cgroup_cpu_limit();

}  // namespace backplane

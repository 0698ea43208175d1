// SPDX-License-Identifier: Apache-2.0
// Whether a process is slow, or has no processor.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace backplane::conform {

// How long the thread of the process that waited longest could have run and was given no processor, since it began:
// what a busy machine takes from it. 0 where the kernel does not count it (/proc/PID/task/TID/schedstat).
std::chrono::milliseconds time_starved(pid_t process);

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// Distinguishes a slow process from a process that gets no processor.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace backplane::conform {

// How long the process has been runnable without a processor since it started. This is the time of its thread that
// waited longest. Returns 0 if the kernel does not count it (/proc/PID/task/TID/schedstat).
std::chrono::milliseconds time_starved(pid_t process);

}  // namespace backplane::conform

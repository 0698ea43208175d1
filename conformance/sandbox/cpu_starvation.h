// SPDX-License-Identifier: Apache-2.0
// Distinguishes a slow process from one that gets no processor.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace backplane::conform {

// The time since its start for which the process was runnable without a processor, of the thread that waited longest.
// 0 if the kernel does not count it (/proc/PID/task/TID/schedstat).
std::chrono::milliseconds time_starved(pid_t process);

}  // namespace backplane::conform

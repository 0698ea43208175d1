// SPDX-License-Identifier: Apache-2.0
// Distinguishes a slow process from one that gets no processor.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace backplane::conform {

// How long the process has been runnable without a processor since its start: the time of the thread that waited
// longest. 0 if the kernel does not count it (/proc/PID/task/TID/schedstat).
std::chrono::milliseconds time_starved(pid_t process);

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// Distinguishes a slow process from a process that gets no processor.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>

namespace backplane::conform {

// How long each thread of a process has been runnable without a processor since it started, by the thread's id.
using Starvation = std::map<pid_t, std::chrono::nanoseconds>;
// Empty if the kernel does not count this time (/proc/PID/task/TID/schedstat).
Starvation starvation_of(pid_t process);

// The longest that one of the threads has waited for a processor between two states of a process.
std::chrono::milliseconds time_starved(const Starvation& before, const Starvation& now);

}  // namespace backplane::conform

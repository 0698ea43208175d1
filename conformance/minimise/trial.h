// SPDX-License-Identifier: Apache-2.0
// One piece of work in a process of its own, which may crash or hang.
#pragma once

#include <chrono>
#include <functional>

#include "journal/result.h"

namespace backplane::conform {

// Forks: the caller has no other threads. What the child does not answer in time, or ends without, is its crash or
// timeout; an exception of `work` is its failure. Throws std::system_error if there can be no process.
Result in_fork(const std::function<Result()>& work, std::chrono::milliseconds deadline);

}  // namespace backplane::conform

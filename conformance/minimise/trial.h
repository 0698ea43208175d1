// SPDX-License-Identifier: Apache-2.0
// One piece of work in a process of its own, which may crash or hang.
#pragma once

#include <chrono>
#include <functional>

#include "journal/result.h"

namespace backplane::conform {

// Forks: the caller must have no other threads. A child that ends without an answer, or does not answer in time, is a
// crash or a timeout; an exception of `work` is its failure. Throws std::system_error if there can be no process.
Result in_fork(const std::function<Result()>& work, std::chrono::milliseconds deadline);

}  // namespace backplane::conform

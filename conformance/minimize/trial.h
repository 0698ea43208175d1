// SPDX-License-Identifier: Apache-2.0
// Runs a function in its own process, because it may crash or hang.
#pragma once

#include <chrono>
#include <functional>

#include "journal/result.h"

namespace backplane::conform {

// Forks and runs `work` in the child. The caller must have no other threads. A child that exits without a result is a
// crash, a child without a result in time is a timeout, and an exception thrown by `work` is a failure. Throws
// std::system_error if no process can be created.
Result in_fork(const std::function<Result()>& work, std::chrono::milliseconds deadline);

}  // namespace backplane::conform

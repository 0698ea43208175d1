// SPDX-License-Identifier: Apache-2.0
// Runs one piece of work, which may crash or hang, in a process of its own.
#pragma once

#include <chrono>
#include <functional>

#include "journal/result.h"

namespace backplane::conform {

// Forks: the caller must have no other threads. A child that exits without a result is a crash, one without a result in
// time a timeout, an exception of `work` a failure. Throws std::system_error if no process can be created.
Result in_fork(const std::function<Result()>& work, std::chrono::milliseconds deadline);

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// The one place where the loader hands work to oneTBB's threads. Spawn and end are told to the thread sanitizer, which does not see into
// that library.
#pragma once

#include <functional>

namespace backplane {

// Runs `work` soon on another thread. It must not throw.
void enqueue(std::function<void()> work);

}  // namespace backplane

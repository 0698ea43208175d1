// SPDX-License-Identifier: Apache-2.0
// Forks of a process that uses this library. A child has none of its parent's threads, and the locks that those held
// stay locked in it, so a child may only release objects.
#pragma once

#include <mutex>

namespace backplane::onnxifi {

// Records that this process uses the library from now on. Called before the library looks for devices.
void start_use();
// Whether this process was forked from a process that had called start_use.
bool is_forked();

// The lock of all tables of handles. A fork waits for it, so that no thread holds it in the child.
std::mutex& handles_mutex();

}  // namespace backplane::onnxifi

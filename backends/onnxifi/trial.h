// SPDX-License-Identifier: Apache-2.0
// Uses libraries in child processes first, as a library may crash, exit or hang when it is called for the first time.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace onnxifi_backend {

// Called before one or more calls of a library's function, with the name of the function.
using OnCall = std::function<void(const char* function)>;

// The time limit for trying libraries in children: half of the time that the loader allows for listing a backend's
// devices (BACKPLANE_SCAN_TIMEOUT_MS). The other half is for using the libraries in this process.
std::chrono::milliseconds trial_limit();

// Calls `use` with each number below `count`, each in a child process of its own. The children are copies of this
// process, not another program, because the sandbox of backends refuses to start programs. They run at the same time,
// so `limit` applies to all of them together. Returns one text for each number: how the child failed and the remedy,
// or empty if `use` returned. A text such as "crashed (SIGSEGV) in dlopen: …" continues a sentence that begins with the
// library's path.
std::vector<std::string> try_each(size_t count, const std::function<void(size_t, const OnCall&)>& use,
                                  std::chrono::milliseconds limit);

}  // namespace onnxifi_backend

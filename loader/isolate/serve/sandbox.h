// SPDX-License-Identifier: Apache-2.0
// The rights that a backend's process gives up before it loads the library.
#pragma once

#include <string>
#include <vector>

namespace backplane::isolate {

enum class Sandbox {
  kStrict,   // no network, no new programs, no files but libraries and what drivers read about the machine
  kDrivers,  // also /dev, local sockets, new programs, and files below temporary and cache folders
  kOff,      // limits alone
};

struct SandboxSettings {
  Sandbox kind = Sandbox::kStrict;
  std::string library;                // whose folder can be read
  std::vector<std::string> readable;  // further files and folders
  bool limits_memory = true;          // to what the machine has; a sanitizer reserves more
};

// Enters it for good: this thread, and threads and processes that it starts from now on. Returns what is in force:
// "limits, landlock, seccomp"; what the kernel lacks is left out.
std::string enter_sandbox(const SandboxSettings& settings);

}  // namespace backplane::isolate

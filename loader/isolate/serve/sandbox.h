// SPDX-License-Identifier: Apache-2.0
// The rights that a backend's process gives up before it loads the library.
#pragma once

#include <string>
#include <vector>

namespace backplane::isolate {

enum class Sandbox {
  kStrict,   // no network, no new programs; only libraries and system files can be read
  kDrivers,  // also /dev, local sockets, new programs, and files below temporary and cache folders
  kOff,      // only resource limits, and no new privileges
};

struct SandboxSettings {
  Sandbox kind = Sandbox::kStrict;
  std::string library;                // whose folder can be read
  std::vector<std::string> readable;  // further files and folders
  bool limits_memory = true;          // to the machine's memory; a sanitizer reserves more
};

// Enters the sandbox for good: this thread, and threads and processes that it starts from now on. Returns what is in
// force, as in "limits, no new privileges, files (Landlock)"; parts that the kernel lacks are omitted.
std::string enter_sandbox(const SandboxSettings& settings);

}  // namespace backplane::isolate

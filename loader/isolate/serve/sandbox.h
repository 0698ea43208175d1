// SPDX-License-Identifier: Apache-2.0
// The rights that a backend's process gives up before it loads the plugin's library.
#pragma once

#include <string>
#include <vector>

namespace backplane::isolate {

enum class Sandbox {
  // No network, no new programs, no capabilities, no signals to the framework, no access to the limits of other
  // processes, no changes of priorities or of file permissions, owners and times, no more memory than the machine has.
  // Only the library's folder, system folders, LD_LIBRARY_PATH and `readable` can be read. Only devices such as
  // /dev/null can be written.
  kStrict,
  // Also allows /dev, local sockets, new programs, capabilities, changes of priorities and of file permissions, owners
  // and times, any amount of memory, and reading and writing files in temporary and cache folders.
  kDrivers,
  kOff,  // forbids only core dumps and new privileges
};

struct SandboxSettings {
  Sandbox kind = Sandbox::kStrict;
  std::string library;                // its folder is readable
  std::vector<std::string> readable;  // additional files and folders
  bool limits_memory = true;          // false: kStrict does not limit memory, because a sanitizer reserves more
};

struct Restrictions {
  std::string in_force;  // such as "limits, no new privileges, files (Landlock)"
  std::string lacking;   // the parts of the sandbox that the kernel does not support
};

// Enters the sandbox permanently, with all threads and processes that this thread starts later.
Restrictions enter_sandbox(const SandboxSettings& settings);

}  // namespace backplane::isolate

// SPDX-License-Identifier: Apache-2.0
// Calls into the kernel that a process gives up (seccomp), before it runs a plugin.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace backplane::isolate {

// Calls that are refused fail with EPERM; all others are allowed. Filters add up: a call is allowed if each filter
// allows it.
class CallFilter {
 public:
  CallFilter();

  void refuse(std::span<const int> calls);
  // Allows or refuses a call with one of these values in an argument, of which the kernel reads the lower half, and
  // decides the opposite for all other values.
  void decide_by(int call, size_t argument, std::initializer_list<uint32_t> values, bool allowed);
  // Signals to the framework, to its group and to all processes, and limits of other processes. The framework is the
  // parent of this process. Signals to other processes are allowed, because the filter cannot distinguish those that
  // the plugin starts from the rest.
  void protect_framework();

  // For all threads of this process, permanently. Requires no_new_privs or root. Returns false if the kernel has no
  // seccomp, or the processor is none that is known here.
  bool enforce();

 private:
  void load(size_t offset);
  void end(bool allowed);

  std::vector<sock_filter> program_;
};

}  // namespace backplane::isolate

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

// Calls that are refused fail with EPERM; all others are allowed, except those of another ABI of the processor (32-bit,
// x32). Filters add up: a call is allowed if each filter allows it.
class CallFilter {
 public:
  CallFilter();

  void refuse(std::span<const int> calls);
  // Allows or refuses a call with one of these values in an argument, of which the kernel reads the lower half, and
  // decides the opposite for all other values.
  void decide_by(int call, size_t argument, std::initializer_list<uint32_t> values, bool allowed);
  // Refuses signals to the framework (the parent of this process), to its group and to all processes; tkill,
  // pidfd_send_signal and calls that choose the receiver of I/O signals; and prlimit on other processes. Other signals
  // are allowed, because the filter cannot distinguish processes that the plugin starts from the rest.
  void protect_framework();

  // Applies the filter to all threads of this process, permanently. Call once, after all rules. Requires no_new_privs
  // or CAP_SYS_ADMIN. Returns false if the kernel refuses, or if the processor is neither x86-64 nor AArch64.
  bool enforce();

 private:
  void load(size_t offset);
  void end(bool allowed);

  std::vector<sock_filter> program_;
};

}  // namespace backplane::isolate

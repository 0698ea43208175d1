// SPDX-License-Identifier: Apache-2.0
#include "isolate/call_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace backplane::isolate {
namespace {

// On x86-64, system calls can also be made by other numbers (the x32 ABI), which start at kX32 and must not bypass
// the filter.
constexpr uint32_t kX32 = 0x40000000u;

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kMachine = 0;
#endif

}  // namespace

CallFilter::CallFilter() {
  load(offsetof(seccomp_data, arch));
  program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0));
  end(false);
  load(offsetof(seccomp_data, nr));
  if (kMachine == AUDIT_ARCH_X86_64) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1));
    end(false);
  }
}

void CallFilter::load(size_t offset) {
  program_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
}

void CallFilter::end(bool allowed) {
  program_.push_back(BPF_STMT(BPF_RET | BPF_K, allowed ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EPERM));
}

void CallFilter::refuse(std::span<const int> calls) {
  for (const int call : calls) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    end(false);
  }
}

void CallFilter::decide_by(int call, size_t argument, std::initializer_list<uint32_t> values, bool allowed) {
  auto left = static_cast<uint8_t>(values.size());
  program_.push_back(
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, static_cast<uint8_t>(left + 3)));
  load(offsetof(seccomp_data, args) + argument * sizeof(uint64_t));
  for (const uint32_t value : values) program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, left--, 0));
  end(!allowed);
  end(allowed);
}

void CallFilter::protect_framework() {
  const auto self = static_cast<uint32_t>(::getpid()), framework = static_cast<uint32_t>(::getppid());
  const auto group = [](pid_t number) { return static_cast<uint32_t>(-number); };
  decide_by(SYS_kill, 0, {framework, group(::getpgid(::getppid())), group(1)}, false);
  for (const int call : {SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo})
    decide_by(call, 0, {framework}, false);
  // By the numbers of threads and by descriptors, which are not known here.
  constexpr int kOther[] = {SYS_tkill, SYS_pidfd_send_signal};
  refuse(kOther);
  decide_by(SYS_fcntl, 1, {F_SETOWN, F_SETOWN_EX}, false);
  decide_by(SYS_ioctl, 1, {FIOSETOWN, SIOCSPGRP}, false);
  decide_by(SYS_prlimit64, 0, {0, self}, true);
}

bool CallFilter::enforce() {
  if (kMachine == 0) return false;
  end(true);
  const sock_fprog whole{static_cast<unsigned short>(program_.size()), program_.data()};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &whole) == 0;
}

}  // namespace backplane::isolate

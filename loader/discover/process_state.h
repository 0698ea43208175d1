// SPDX-License-Identifier: Apache-2.0
// What a plugin can change for its whole process: resource limits, timers, the umask, the working folder and how
// signals are handled. The probe refuses a plugin that changes them. After loading a library, creating and opening,
// which are rare, the loader puts back lowered limits, and the rest if the plugin was not probed: what a framework's
// other threads change meanwhile cannot be told from what the plugin changes. call.h keeps the state of the thread in
// all calls.
#pragma once

#include <sys/resource.h>
#include <sys/time.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>

#include "isolate/descriptor.h"

namespace backplane {

// The part of the state that was changed. Fits into the probe's report.
using ProcessPart = uint8_t;
inline constexpr ProcessPart kUnchanged = 0;
// Completes "it changed …". Accepts any number.
std::string text_of_part(ProcessPart part);

class ProcessState {
 public:
  ProcessState();  // as it is now
  // The first part that differs now. Limits count only if they are lower, since some libraries raise them. Of signals,
  // those count with which a process is controlled, if they are ignored now or a handler was replaced.
  ProcessPart changed() const { return compare(false, false); }
  // Puts back each part that differs, or only limits, as far as the system permits: a lowered hard limit needs
  // CAP_SYS_RESOURCE. Returns the first one. Allocates no memory, because a limit may leave none.
  ProcessPart restore(bool only_limits = false) const { return compare(true, only_limits); }
  std::chrono::steady_clock::time_point taken() const { return taken_; }

 private:
  static constexpr int kSignals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGALRM,  SIGTERM, SIGCHLD,
                                     SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGXCPU, SIGXFSZ};
  static constexpr int kTimers[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

  ProcessPart compare(bool restore, bool only_limits) const;
  bool put_back_limit(size_t resource, bool restore) const;
  bool put_back_timer(size_t index, bool restore) const;
  bool put_back_signal(size_t index, bool restore) const;
  bool put_back_umask(bool restore) const;
  bool put_back_folder(bool restore) const;

  std::chrono::steady_clock::time_point taken_;
  rlimit limits_[RLIM_NLIMITS] = {};
  itimerval timers_[std::size(kTimers)] = {};
  struct sigaction signals_[std::size(kSignals)] = {};
  int umask_;                   // -1: unknown
  isolate::Descriptor folder_;  // none: unknown
};

enum class KeptParts : uint8_t { kNone, kLimits, kAll };

// Puts parts of the process's state back when it is destroyed. Those of several threads share one state, so that none
// mistakes what another thread's plugin changed for the state to be kept.
class KeptProcessState {
 public:
  explicit KeptProcessState(KeptParts parts);
  ~KeptProcessState() { restore(); }
  KeptProcessState(const KeptProcessState&) = delete;
  ProcessPart restore() const { return kept_ ? kept_->restore(parts_ == KeptParts::kLimits) : kUnchanged; }

 private:
  const KeptParts parts_;
  std::shared_ptr<const ProcessState> kept_;  // null for kNone
};

// Whether the stack of this thread is executable. A library without the mark that it needs no such stack makes it so.
bool stack_is_executable();
// The part that stands for this.
inline constexpr ProcessPart kStackPart = 4;

}  // namespace backplane

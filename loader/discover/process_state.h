// SPDX-License-Identifier: Apache-2.0
// What a plugin can change for its whole process: resource limits, timers, the umask, the working folder and how
// signals are handled. The probe refuses a plugin that changes them. The loader puts them back after loading a library,
// and after creating and opening, because those calls are rare; call.h keeps the state of the thread in all calls.
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
  ProcessPart changed() const { return compare(false); }
  // Puts back each part that differs, as far as the system permits: a lowered hard limit needs CAP_SYS_RESOURCE.
  // Returns the first one. Allocates no memory, because a limit may leave none.
  ProcessPart restore() const { return compare(true); }
  std::chrono::steady_clock::time_point taken() const { return taken_; }

 private:
  static constexpr int kSignals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGALRM,  SIGTERM, SIGCHLD,
                                     SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGXCPU, SIGXFSZ};
  static constexpr int kTimers[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

  ProcessPart compare(bool restore) const;
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

// Puts the process's state back when it is destroyed. Those of several threads share one state, so that none mistakes
// what another thread's plugin changed for the state to be kept.
class KeptProcessState {
 public:
  KeptProcessState();
  ~KeptProcessState() { restore(); }
  KeptProcessState(const KeptProcessState&) = delete;
  ProcessPart restore() const { return kept_->restore(); }

 private:
  std::shared_ptr<const ProcessState> kept_;
};

// Whether the stack of this thread is executable. A library without the mark that it needs no such stack makes it so.
bool stack_is_executable();
// The part that stands for this.
inline constexpr ProcessPart kStackPart = 4;

}  // namespace backplane

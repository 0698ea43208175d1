// SPDX-License-Identifier: Apache-2.0
// The state that a plugin can change for its whole process: resource limits, timers, the umask, the working folder and
// how signals are handled. The probe refuses a plugin that changes it. The loader restores lowered limits after it
// loads a library, creates a backend, lists devices or opens one; all of these are rare. It restores the other parts
// only where plugins are not probed (ProbePolicy::kNever, isolated backends), because it cannot distinguish the
// plugin's changes from those that other threads of the framework make meanwhile. call.h restores the state of the
// calling thread.
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
  // The first part that differs from the saved state. A limit counts only if it is lower now, because some libraries
  // raise limits. A signal counts only if it is one of kSignals, by which processes are controlled, and it is ignored
  // now, its handler was replaced or removed, or SA_NOCLDWAIT was set.
  ProcessPart changed() const { return compare(false, false); }
  // Restores each part that differs, or only limits, as far as the system permits: raising a lowered hard limit needs
  // CAP_SYS_RESOURCE. Returns the first part that differed. Allocates no memory, because a limit may leave none.
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

// Restores parts of the process's state in its destructor. Objects that exist at the same time share one saved state:
// an object that saved its own could save what another thread's plugin has changed.
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

// Whether the stack of this thread or of the main thread is executable. Loading a library that is not marked as working
// without an executable stack makes it executable.
bool stack_is_executable();
// The part that stands for an executable stack.
inline constexpr ProcessPart kStackPart = 4;

}  // namespace backplane

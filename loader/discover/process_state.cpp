// SPDX-License-Identifier: Apache-2.0
#include "discover/process_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "base/forks.h"

namespace backplane {
namespace {

using Clock = std::chrono::steady_clock;

constexpr ProcessPart kTimerPart = 1, kUmaskPart = 2, kFolderPart = 3;  // kStackPart is 4
constexpr ProcessPart kFirstSignal = 64, kFirstLimit = 128;             // plus the signal or the resource
constexpr double kTimerTolerance = 2;                                   // seconds
// An older saved state is not shared: its thread may hang in a plugin, while the framework changes the process's state.
constexpr std::chrono::seconds kSharedFor{60};

constexpr std::string_view kLimits[] = {"RLIMIT_CPU",      "RLIMIT_FSIZE", "RLIMIT_DATA",   "RLIMIT_STACK",
                                        "RLIMIT_CORE",     "RLIMIT_RSS",   "RLIMIT_NPROC",  "RLIMIT_NOFILE",
                                        "RLIMIT_MEMLOCK",  "RLIMIT_AS",    "RLIMIT_LOCKS",  "RLIMIT_SIGPENDING",
                                        "RLIMIT_MSGQUEUE", "RLIMIT_NICE",  "RLIMIT_RTPRIO", "RLIMIT_RTTIME"};
static_assert(RLIMIT_CPU == 0 && RLIMIT_NPROC == 6 && RLIMIT_AS == 9 && RLIM_NLIMITS == std::size(kLimits));

std::mutex shared_mutex;  // guards the state that several threads share
const FreeInChildren<shared_mutex> kFreeSharedInChildren;

// Reads the umask from /proc, because umask() cannot read it without changing it. Returns -1 if there is no /proc.
int read_umask() {
  char text[512] = {};
  const isolate::Descriptor file(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  if (!file || ::read(file.get(), text, sizeof text - 1) <= 0) return -1;
  const char* const line = std::strstr(text, "\nUmask:");
  return line ? static_cast<int>(std::strtol(line + std::strlen("\nUmask:"), nullptr, 8)) : -1;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

timeval time_of(double seconds) {
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<suseconds_t>((seconds - whole) * 1e6)};
}

// Whether a signal is ignored now, its handler (or SIG_IGN) was replaced or removed, or SA_NOCLDWAIT was set, with
// which the system reaps children itself. A handler where there was none does not count: LLVM, which many drivers
// contain, installs its own for SIGHUP, SIGINT and SIGTERM to remove its temporary files.
bool is_other_handling(const struct sigaction& then, const struct sigaction& now) {
  // sa_handler and sa_sigaction are members of a union.
  const bool reaps = (now.sa_flags & SA_NOCLDWAIT) && !(then.sa_flags & SA_NOCLDWAIT);
  if (then.sa_handler == now.sa_handler) return reaps;
  return then.sa_handler != SIG_DFL || now.sa_handler == SIG_IGN || reaps;
}

}  // namespace

std::string text_of_part(ProcessPart part) {
  if (part >= kFirstLimit && static_cast<size_t>(part - kFirstLimit) < std::size(kLimits))
    return fmt::format("the resource limit {} of its process", kLimits[part - kFirstLimit]);
  if (const char* name = part >= kFirstSignal && part < kFirstLimit ? sigabbrev_np(part - kFirstSignal) : nullptr)
    return fmt::format("how its process handles SIG{}", name);
  switch (part) {
    case kTimerPart:
      return "a timer of its process (alarm or setitimer)";
    case kUmaskPart:
      return "the umask of its process";
    case kFolderPart:
      return "the working folder of its process";
    case kStackPart:
      return "the stack of its process, which became executable,";
    default:
      return "the state of its process";
  }
}

ProcessState::ProcessState()
    : taken_(Clock::now()), umask_(read_umask()), folder_(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  for (size_t i = 0; i < std::size(limits_); ++i) getrlimit(static_cast<__rlimit_resource>(i), &limits_[i]);
  for (size_t i = 0; i < std::size(kTimers); ++i) getitimer(static_cast<__itimer_which>(kTimers[i]), &timers_[i]);
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], nullptr, &signals_[i]);
}

bool ProcessState::put_back_limit(size_t resource, bool restore) const {
  const auto which = static_cast<__rlimit_resource>(resource);
  const rlimit& then = limits_[resource];
  rlimit now{};
  if (getrlimit(which, &now) != 0 || (now.rlim_cur >= then.rlim_cur && now.rlim_max >= then.rlim_max)) return false;
  if (!restore) return true;
  rlimit wanted{std::max(now.rlim_cur, then.rlim_cur), std::max(now.rlim_max, then.rlim_max)};
  if (setrlimit(which, &wanted) == 0) return true;
  wanted = {std::min(wanted.rlim_cur, now.rlim_max), now.rlim_max};
  setrlimit(which, &wanted);
  return true;
}

bool ProcessState::put_back_timer(size_t index, bool restore) const {
  const auto which = static_cast<__itimer_which>(kTimers[index]);
  itimerval now{};
  itimerval wanted = timers_[index];
  if (getitimer(which, &now) != 0) return false;
  const double then = seconds_of(wanted.it_value), left = seconds_of(now.it_value);
  const double passed = std::chrono::duration<double>(Clock::now() - taken_).count();
  bool differs = seconds_of(wanted.it_interval) != seconds_of(now.it_interval);
  if (then == 0) {
    differs |= left != 0;
  } else if (seconds_of(wanted.it_interval) == 0) {
    // ITIMER_REAL has counted `passed`. The others count processor time of all threads, so any part of `then` may be
    // left.
    const double least = which == ITIMER_REAL ? then - passed : 0;
    differs |= left > then + kTimerTolerance || left < least - kTimerTolerance;
    differs |= which == ITIMER_REAL && left > least + kTimerTolerance;
    wanted.it_value = time_of(std::max(which == ITIMER_REAL ? least : then, 0.001));
  }
  if (differs && restore) setitimer(which, &wanted, nullptr);
  return differs;
}

bool ProcessState::put_back_signal(size_t index, bool restore) const {
  struct sigaction now {};
  if (sigaction(kSignals[index], nullptr, &now) != 0 || !is_other_handling(signals_[index], now)) return false;
  if (restore) sigaction(kSignals[index], &signals_[index], nullptr);
  return true;
}

bool ProcessState::put_back_umask(bool restore) const {
  const int now = umask_ < 0 ? -1 : read_umask();
  if (now < 0 || now == umask_) return false;
  if (restore) ::umask(static_cast<mode_t>(umask_));
  return true;
}

bool ProcessState::put_back_folder(bool restore) const {
  struct stat then {
  }, now{};
  if (!folder_ || ::fstat(folder_.get(), &then) != 0 || ::stat(".", &now) != 0) return false;
  if (then.st_dev == now.st_dev && then.st_ino == now.st_ino) return false;
  if (restore) static_cast<void>(::fchdir(folder_.get()));
  return true;
}

ProcessPart ProcessState::compare(bool restore, bool only_limits) const {
  ProcessPart first = kUnchanged;
  const auto note = [&](bool differs, size_t part) {
    if (differs && first == kUnchanged) first = static_cast<ProcessPart>(part);
  };
  for (size_t i = 0; i < std::size(limits_); ++i) note(put_back_limit(i, restore), kFirstLimit + i);
  if (only_limits) return first;
  for (size_t i = 0; i < std::size(kTimers); ++i) note(put_back_timer(i, restore), kTimerPart);
  for (size_t i = 0; i < std::size(kSignals); ++i) note(put_back_signal(i, restore), kFirstSignal + kSignals[i]);
  note(put_back_umask(restore), kUmaskPart);
  note(put_back_folder(restore), kFolderPart);
  return first;
}

KeptProcessState::KeptProcessState(KeptParts parts) : parts_(parts) {
  if (parts == KeptParts::kNone) return;
  static auto& shared = *new std::weak_ptr<const ProcessState>;
  static pid_t owner = 0;  // a forked child has no timers, and its copy of the parent's state may never be released
  const std::lock_guard lock(shared_mutex);
  kept_ = shared.lock();
  if (kept_ && owner == ::getpid() && Clock::now() - kept_->taken() < kSharedFor) return;
  shared = kept_ = std::make_shared<const ProcessState>();
  owner = ::getpid();
}

bool stack_is_executable() {
  const auto own = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (!maps) return false;
  char line[512];
  // A stack of which a part was made executable consists of several mappings, one directly after the other.
  uintptr_t last_end = 0;
  bool is_stack = false, is_executable = false, found = false, at_start = true;
  while (std::fgets(line, sizeof line, maps)) {
    uintptr_t begin = 0, end = 0;
    char rights[5] = {}, name[16] = {};
    const int fields = at_start ? std::sscanf(line, "%zx-%zx %4s %*s %*s %*s %15s", &begin, &end, rights, name) : 0;
    at_start = std::strchr(line, '\n') != nullptr;
    if (fields < 3) continue;
    const bool named = std::strcmp(name, "[stack]") == 0;
    if (begin != last_end || (fields == 4 && !named)) is_stack = is_executable = false;
    last_end = end;
    is_stack = is_stack || named || (begin <= own && own < end);
    is_executable = is_executable || rights[2] == 'x';
    found = found || (is_stack && is_executable);
  }
  std::fclose(maps);
  return found;
}

}  // namespace backplane

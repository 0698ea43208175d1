// SPDX-License-Identifier: Apache-2.0
#include "trial.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace onnxifi_backend {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kEnd = '\n';  // ends the name of each function; an empty line follows the last call

// A child process, and the pipe to which it reports.
struct Child {
  pid_t id = -1;
  int process = -1;  // a descriptor of the process; readable when it has ended
  int report = -1;
  std::string failure;  // why it could not be started
};

[[noreturn]] void run(size_t number, const std::function<void(size_t, const OnCall&)>& use, int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // if this process is killed meanwhile, ends a library that hangs
  setpgid(0, 0);
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP, SIGSYS, SIGTERM})
    std::signal(signal, SIG_DFL);  // the framework's handlers are for its own process
  const auto write_line = [report](std::string line) {
    line += kEnd;
    if (write(report, line.data(), line.size()) < 0) _exit(1);
  };
  use(number, write_line);
  write_line({});
  _exit(0);  // skips exit handlers
}

Child start(size_t number, const std::function<void(size_t, const OnCall&)>& use) {
  Child child;
  const auto failed = [&](const char* what) {
    child.failure = std::string("cannot be tried in a child process: ") + what + ": " + std::strerror(errno);
    return child;
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return failed("pipe");
  child.report = ends[0];
  child.id = fork();
  if (child.id == 0) run(number, use, ends[1]);
  close(ends[1]);
  if (child.id < 0) return failed("fork");
  setpgid(child.id, child.id);  // the child does so too, as either process may be the first to run
  child.process = static_cast<int>(syscall(SYS_pidfd_open, child.id, 0));
  // ESRCH: the framework ignores SIGCHLD, and the child has ended.
  if (child.process < 0 && errno != ESRCH) failed("pidfd_open");
  return child;
}

// Waits until the process has ended. Returns false if the deadline passes first.
bool await(int process, Clock::time_point deadline) {
  while (process >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd watched{process, POLLIN, 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
  return true;
}

std::string read_report(int report) {
  std::string text;
  char piece[256];
  for (ssize_t got; (got = read(report, piece, sizeof piece)) > 0;) text.append(piece, static_cast<size_t>(got));
  return text;
}

// Waits for the child until `deadline`, then kills its process group. Returns how the child failed, or an empty string
// if it reported its last call.
std::string finish(const Child& child, Clock::time_point deadline, std::chrono::milliseconds limit) {
  bool is_late = false;
  int status = 0;
  pid_t reaped = -1;
  if (child.id > 0) {
    is_late = child.failure.empty() && !await(child.process, deadline);
    // Before the child is reaped, as its number may be used again after that. A sandbox keeps the child in the group of
    // this process, which the loader kills as a whole.
    if (kill(-child.id, SIGKILL) != 0) kill(child.id, SIGKILL);
    do reaped = waitpid(child.id, &status, 0);
    while (reaped < 0 && errno == EINTR);
  }
  std::string report = child.report >= 0 ? read_report(child.report) : std::string();
  for (const int descriptor : {child.process, child.report})
    if (descriptor >= 0) close(descriptor);
  if (!child.failure.empty()) return child.failure;
  const std::string_view end = "\n\n";
  if (!is_late && report.size() >= end.size() && report.compare(report.size() - end.size(), end.size(), end) == 0)
    return {};
  if (!report.empty()) report.pop_back();
  std::string function = report.substr(report.rfind(kEnd) + 1);
  if (is_late)
    return "did not return from " + function + " within " + std::to_string(limit.count()) +
           " ms, half of BACKPLANE_SCAN_TIMEOUT_MS: raise that if the library is only slow, else remove the library";
  constexpr std::string_view kWayOut = ": remove the library, or ask its vendor";
  if (reaped == child.id && WIFSIGNALED(status)) {
    const char* const name = sigabbrev_np(WTERMSIG(status));
    return std::string("crashed (SIG") + (name != nullptr ? name : "?") + ") in " + function.append(kWayOut);
  }
  const std::string code =
      reaped == child.id && WIFEXITED(status) ? " (exit code " + std::to_string(WEXITSTATUS(status)) + ")" : "";
  return "ended the process" + code + " in " + function.append(kWayOut);
}

}  // namespace

std::chrono::milliseconds trial_limit() {
  uint32_t limit = 20'000;  // the loader's default
  if (const char* const text = secure_getenv("BACKPLANE_SCAN_TIMEOUT_MS")) {
    uint32_t stated = 0;
    const std::string_view digits = text;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), stated);
    if (error == std::errc() && end == digits.data() + digits.size() && stated > 0)
      limit = std::min<uint32_t>(stated, 3'600'000);
  }
  return std::chrono::milliseconds(limit / 2);
}

std::vector<std::string> try_each(size_t count, const std::function<void(size_t, const OnCall&)>& use,
                                  std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  std::vector<Child> children;
  for (size_t i = 0; i < count; ++i) children.push_back(start(i, use));
  std::vector<std::string> failures;
  for (const Child& child : children) failures.push_back(finish(child, deadline, limit));
  return failures;
}

}  // namespace onnxifi_backend

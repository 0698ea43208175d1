// SPDX-License-Identifier: Apache-2.0
#include "sandbox/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "sandbox/starved.h"

namespace backplane::conform {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kAnswers = 3;
constexpr size_t kMaxLine = 1 << 20;
constexpr milliseconds kTick{100};  // less is nothing

void check(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

// A child in a process group of its own, and the pipe that it answers on. Ends with the object.
class Child {
 public:
  Child(const std::vector<std::string>& arguments, uint64_t memory) {
    int pipe_ends[2], gate[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) check(errno, "pipe2");
    if (pipe2(gate, O_CLOEXEC) != 0) {
      const int error = errno;
      close(pipe_ends[0]);
      close(pipe_ends[1]);
      check(error, "pipe2");
    }
    answers_ = pipe_ends[0];
    const int error = spawn(arguments, gate[0], pipe_ends[1]);
    close(pipe_ends[1]);
    close(gate[0]);
    if (error == 0) limit(memory);
    close(gate[1]);  // it may begin: its limits hold
    if (error != 0) close(answers_);
    check(error, "posix_spawn");
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (!reaped_) reap();
    close(answers_);
  }

  enum Event { kLine, kEnd, kTimeout };
  // The next line of the answers, or why there is none.
  Event next(Clock::time_point deadline, std::string& out_line) {
    for (;;) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        out_line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return kLine;
      }
      if (buffer_.size() > kMaxLine) return kEnd;
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return kTimeout;
      pollfd wait = {answers_, POLLIN, 0};
      if (poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, INT32_MAX))) <= 0) continue;
      char piece[4096];
      const ssize_t size = read(answers_, piece, sizeof piece);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return kEnd;
      buffer_.append(piece, static_cast<size_t>(size));
    }
  }

  milliseconds starved() const { return conform::starved(pid_); }

  // Waits for the end and describes it; empty for a normal one. A child that lingers is killed.
  std::string end(Clock::time_point deadline) {
    siginfo_t info = {};
    bool lingered = false;
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0) {
      lingered = Clock::now() >= deadline;
      if (lingered) break;
      std::this_thread::sleep_for(milliseconds(1));
    }
    const int status = reap();
    if (lingered) return "the process did not end";
    if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit status {}", WEXITSTATUS(status));
  }

 private:
  int spawn(const std::vector<std::string>& arguments, int gate, int answers) {
    std::string program = "/proc/self/exe";
    std::vector<std::string> strings = arguments;
    std::vector<char*> argv = {program.data()};
    for (std::string& string : strings) argv.push_back(string.data());
    argv.push_back(nullptr);

    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, gate, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, answers, kAnswers);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);  // standard output is the report's
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    const int error = posix_spawn(&pid_, program.c_str(), &files, &attributes, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return error;
  }
  void limit(uint64_t memory) const {
    const rlimit no_core = {0, 0}, own = {memory, memory};
    prlimit(pid_, RLIMIT_CORE, &no_core, nullptr);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadows are larger than any memory
    if (memory != 0) prlimit(pid_, RLIMIT_DATA, &own, nullptr);      // not RLIMIT_AS: drivers reserve addresses
#else
    (void)own;
#endif
  }
  // Ends the whole group first: after the wait its id may be somebody else's.
  int reap() {
    int status = 0;
    kill(-pid_, SIGKILL);
    waitpid(pid_, &status, 0);
    reaped_ = true;
    return status;
  }

  pid_t pid_ = -1;
  int answers_ = -1;
  bool reaped_ = false;
  std::string buffer_;
};

struct End {
  size_t next;                  // the first case without a result
  std::optional<Result> crash;  // of the one before it, or of the process after the last
};

// Runs cases from `first` on until the child ends; crashes are left to the caller to report.
End run_once(const ChildSettings& settings, const std::vector<Case>& cases, size_t first,
             const std::function<void(Result)>& report) {
  std::vector<std::string> arguments = settings.arguments;
  for (size_t i = first; i < cases.size(); ++i)
    arguments.push_back(cases[i].argument.empty() ? cases[i].name : cases[i].argument);
  Child child(arguments, settings.memory);

  bool ready = false;
  size_t current = first;
  auto case_start = Clock::now();
  milliseconds starved{0};  // what is known of it at the deadline
  for (std::string line;;) {
    const Child::Event event = child.next(case_start + settings.deadline + starved, line);
    if (event == Child::kTimeout) {
      const milliseconds seen = std::min(child.starved(), kPatience * settings.deadline);
      if (std::exchange(starved, seen) + kTick < seen) continue;
    }
    Result result;
    if (event == Child::kLine) {
      if (line == "ready") {
        ready = true;
      } else if (line == "start") {
        case_start = Clock::now();
        starved = milliseconds(0);
      } else if (line.starts_with("fatal ")) {
        throw Fatal(line.substr(strlen("fatal ")));
      } else if (ready && current < cases.size() && from_json_line(line, result)) {
        result.name = cases[current++].name;
        report(std::move(result));
      }
      continue;
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - case_start).count();
    if (event == Child::kTimeout) {
      if (!ready) throw Fatal(fmt::format("the child process is not ready after {:.1f} s", seconds));
      if (current == cases.size()) {
        report({"(end of process)", State::kTimeout, "the backend does not unload in time", seconds, 0});
        return {current, {}};
      }
      std::string reason = fmt::format("no result after {:.1f} s", seconds);
      if (starved >= kTick)
        reason += fmt::format(", {:.1f} s of them without a processor", std::chrono::duration<double>(starved).count());
      report({cases[current].name, State::kTimeout, std::move(reason), seconds, 0});
      return {current + 1, {}};
    }
    const std::string why = child.end(Clock::now() + settings.deadline);
    if (!ready)
      throw Fatal(fmt::format("the child process ended before its first case: {}", why.empty() ? "no word" : why));
    if (current == cases.size()) {
      if (!why.empty())
        report({"(end of process)", State::kCrash, "the backend's unloading ended in " + why, seconds, 0});
      return {current, {}};
    }
    const std::string reason = why.empty() ? "the process ended without a result" : why;
    return {current + 1, Result{cases[current].name, State::kCrash, reason, seconds, 0}};
  }
}

// Whether the last case crashes where the cases from `first` on run before it in one process.
bool crashes_after(const ChildSettings& settings, const std::vector<Case>& cases, size_t first) {
  const End end = run_once(settings, cases, first, [](const Result&) {});
  return end.crash && end.next == cases.size();
}

// What a crash at the last case, after those from `first` on, has to do with them; empty: nothing, it crashes alone
// too.
std::string accomplice(const ChildSettings& settings, const std::vector<Case>& cases, size_t first) {
  const size_t last = cases.size() - 1;
  if (first == last || crashes_after(settings, cases, last)) return "";
  if (!crashes_after(settings, cases, first)) return "; not again in two more attempts";
  size_t crashes = first, passes = last;  // when one begins there
  while (passes - crashes > 1) {
    const size_t middle = crashes + (passes - crashes) / 2;
    (crashes_after(settings, cases, middle) ? crashes : passes) = middle;
  }
  return "; not alone, but after " + cases[crashes].name;
}

void say(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t size = write(kAnswers, line.data() + done, line.size() - done);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) _exit(1);  // the parent is gone
    done += static_cast<size_t>(size);
  }
}

}  // namespace

void run_in_children(const ChildSettings& settings, std::vector<Case> cases,
                     const std::function<void(Result)>& report) {
  for (size_t first = 0; first < cases.size();) {
    End end = run_once(settings, cases, first, report);
    if (end.crash) {
      const std::vector<Case> until(cases.begin(), cases.begin() + static_cast<int64_t>(end.next));
      end.crash->reason += accomplice(settings, until, first);
      report(std::move(*end.crash));
    }
    first = end.next;
  }
}

int answer(const std::vector<std::string>& folders, const std::function<RunFolder()>& set_up) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // no child outlives the harness
  fcntl(kAnswers, F_SETFD, FD_CLOEXEC);
  // Standard input ends when the limits of this process are set.
  char nothing;
  ssize_t size;
  do size = read(STDIN_FILENO, &nothing, 1);
  while (size > 0 || (size < 0 && errno == EINTR));
  RunFolder run;
  try {
    run = set_up();
  } catch (const std::exception& error) {
    say(std::string("fatal ") + error.what());
    return 1;
  }
  say("ready");
  for (const std::string& folder : folders) {
    say("start");
    const auto start = Clock::now();
    Result result;
    try {
      result = run(folder);
    } catch (const std::exception& error) {
      result.reason = error.what();
    }
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    say(to_json_line(result));
  }
  return 0;
}

}  // namespace backplane::conform

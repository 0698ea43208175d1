// SPDX-License-Identifier: Apache-2.0
#include "minimize/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>

namespace backplane::conform {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void be_child(const std::function<Result()>& work, int answers) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  // Discards the plugin's output, which was already printed when the case failed.
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  Result result;
  try {
    result = work();
  } catch (const std::exception& error) {
    result = {.state = State::kFail, .reason = error.what()};
  }
  const std::string line = to_json_line(result) + '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t size = write(answers, line.data() + done, line.size() - done);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    done += static_cast<size_t>(size);
  }
  _exit(0);  // does not unload the plugin's library, because other cases test unloading
}

// Reads until a line feed, the end of the stream or kMost bytes. Returns false if none of these comes before the
// deadline.
bool read_all(int from, Clock::time_point deadline, std::string& out) {
  constexpr size_t kMost = 1 << 20;
  while (out.size() < kMost) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wait = {from, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, INT32_MAX))) <= 0) continue;
    char piece[4096];
    const ssize_t size = read(from, piece, sizeof piece);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0 || std::memchr(piece, '\n', static_cast<size_t>(size)) != nullptr) {
      out.append(piece, static_cast<size_t>(std::max<ssize_t>(size, 0)));
      return true;
    }
    out.append(piece, static_cast<size_t>(size));
  }
  return true;
}

}  // namespace

Result in_fork(const std::function<Result()>& work, std::chrono::milliseconds deadline) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  const pid_t child = fork();
  if (child == 0) be_child(work, ends[1]);
  const int error = errno;
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    throw std::system_error(error, std::generic_category(), "fork");
  }
  setpgid(child, child);  // the parent sets the group, too, because either process may run first
  std::string line;
  const Clock::time_point end = Clock::now() + deadline;
  bool in_time = read_all(ends[0], end, line);
  close(ends[0]);
  Result result;
  const bool answered = in_time && from_json_line(line, result);
  siginfo_t ended = {};
  // A plugin may close the pipe and go on, so the pipe's end does not mean that the process ends.
  while (in_time && !answered) {
    if (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT | WNOHANG) != 0 || ended.si_pid != 0) break;
    in_time = Clock::now() < end;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(-child, SIGKILL);  // before the wait, after which the group's id may belong to another process
  waitpid(child, nullptr, 0);
  if (answered) return result;
  if (!in_time) return {.state = State::kTimeout, .reason = fmt::format("no result after {} ms", deadline.count())};
  return {.state = State::kCrash,
          .reason = ended.si_code == CLD_EXITED
                        ? fmt::format("exit status {} without a result", ended.si_status)
                        : fmt::format("signal {} ({})", ended.si_status, strsignal(ended.si_status))};
}

}  // namespace backplane::conform

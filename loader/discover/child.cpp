// SPDX-License-Identifier: Apache-2.0
#include "discover/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace backplane {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxSaid = 4096;

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

// What the child begins with: no input, its voice, nothing of ours besides, no signal blocked or ignored.
class SpawnSetup {
 public:
  explicit SpawnSetup(int voice) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_adddup2(&files_, voice, kChildVoice);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&files_, kChildVoice + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;

  int spawn(pid_t& out_child, const char* program, const char* argument) const {
    char* const arguments[] = {const_cast<char*>(program), const_cast<char*>(argument), nullptr};
    return posix_spawn(&out_child, program, &files_, &attributes_, arguments, environ);
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

void listen(int voice, std::string& said) {
  char piece[256];
  for (ssize_t got; said.size() < kMaxSaid && (got = ::read(voice, piece, sizeof piece)) > 0;) said.append(piece, got);
}

// Until the child ended; false when a limit passed before.
bool await(int process, int voice, const ChildLimits& limits, std::string& said) {
  Clock::time_point deadline = Clock::now() + limits.first;
  bool spoke = false, listening = true;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd watched[] = {{process, POLLIN, 0}, {listening ? voice : -1, POLLIN, 0}};
    const int ready = ::poll(watched, 2, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (watched[1].revents) {
      listen(voice, said);
      listening = (watched[1].revents & POLLIN) && said.size() < kMaxSaid;
      if (!spoke && said.find(limits.word) != said.npos) {
        spoke = true;
        deadline = Clock::now() + limits.complete;
      }
    }
    if (watched[0].revents) {
      listen(voice, said);
      return true;
    }
  }
}

}  // namespace

Result<ChildResult> run_child(const std::filesystem::path& program, const std::string& argument,
                              const ChildLimits& limits) {
  auto cannot = [&](const char* what, int error) {
    return Status(error == EPERM || error == EACCES ? BP_PERMISSION_DENIED : BP_UNSUPPORTED,
                  fmt::format("{} for {}: {}", what, program.string(), std::strerror(error)));
  };
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return cannot("no pipe", errno);
  const Descriptor read_end(ends[0]);
  ChildResult result;
  pid_t child = -1;
  {
    const Descriptor write_end(ends[1]);
    // dup2 onto itself would leave it closed on exec; above it this is a copy.
    const Descriptor voice(::fcntl(write_end.get(), F_DUPFD_CLOEXEC, kChildVoice + 1));
    if (voice.get() < 0) return cannot("no descriptor", errno);
    if (const int error = SpawnSetup(voice.get()).spawn(child, program.c_str(), argument.c_str()))
      return cannot("no child process", error);
  }
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (process.get() < 0) {
    // Either the kernel has no such descriptors, or the framework ignores SIGCHLD and the child is already gone.
    const int error = errno;
    if (error != ESRCH) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      return cannot("no descriptor of a child process", error);
    }
    listen(read_end.get(), result.said);
    return result;
  }
  if (!await(process.get(), read_end.get(), limits, result.said)) {
    result.timed_out = true;
    ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  }
  siginfo_t end{};
  int reaped;
  do reaped = ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(process.get()), &end, WEXITED);
  while (reaped != 0 && errno == EINTR);
  if (reaped == 0 && end.si_code == CLD_EXITED) result.exit_code = end.si_status;
  if (reaped == 0 && (end.si_code == CLD_KILLED || end.si_code == CLD_DUMPED)) result.signal = end.si_status;
  return result;
}

}  // namespace backplane

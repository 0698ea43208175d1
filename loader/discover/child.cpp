// SPDX-License-Identifier: Apache-2.0
#include "discover/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "host/variable.h"
#include "isolate/descriptor.h"
#include "isolate/spawn.h"

namespace backplane {
namespace {

using isolate::Descriptor;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxOutput = 4096;
constexpr std::chrono::seconds kDying{5};  // the longest wait for a killed child to end; usually it takes milliseconds

void listen(int report, std::string& output) {
  char piece[256];
  for (ssize_t got; output.size() < kMaxOutput && (got = ::read(report, piece, sizeof piece)) > 0;)
    output.append(piece, got);
}

// Collects the child's report until the child has exited. Returns false if `limit` passes first.
bool await(int process, int report, std::chrono::milliseconds limit, std::string& output) {
  const Clock::time_point deadline = Clock::now() + limit;
  bool listening = true;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd watched[] = {{process, POLLIN, 0}, {listening ? report : -1, POLLIN, 0}};
    const int ready = ::poll(watched, 2, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (watched[1].revents) {
      listen(report, output);
      listening = (watched[1].revents & POLLIN) && output.size() < kMaxOutput;
    }
    if (watched[0].revents) {
      listen(report, output);
      return true;
    }
  }
}

// The environment variables that a child inherits. A final '*' matches any rest of the name.
constexpr std::string_view kPassed[] = {
    "PATH", "HOME", "USER", "LANG", "LC_*", "LOCPATH", "TZ", "TMPDIR", "LD_*", "BACKPLANE_*",
    // not XDG_SESSION_ID and the like, with which each login would be another situation (known.h)
    "XDG_CACHE_HOME", "XDG_CONFIG_*", "XDG_DATA_*", "XDG_RUNTIME_DIR",
    // usual drivers and compute libraries
    "CUDA_*", "NVIDIA_*", "NV_*", "OCL_*", "OPENCL_*", "POCL_*", "CLVK_*", "RUSTICL_*", "MESA_*", "HSA_*", "HIP_*",
    "ROCR_*", "ROC_*", "AMD_*", "GPU_*", "ZE_*", "ZES_*", "ZET_*", "SYCL_*", "ONEAPI_*", "DNNL_*", "ONEDNN_*", "TBB_*",
    "OMP_*", "KMP_*", "MKL_*", "VK_*", "HWLOC_*",
    // sanitizers and coverage
    "ASAN_*", "LSAN_*", "TSAN_*", "UBSAN_*", "LLVM_PROFILE_FILE"};

}  // namespace

Result<ChildResult> run_child(const ChildSetup& setup) {
  auto cannot = [&](const char* what, int error) {
    return Status(error == EPERM || error == EACCES ? BP_PERMISSION_DENIED : BP_UNSUPPORTED,
                  fmt::format("{} for {}: {}", what, setup.program.string(), std::strerror(error)));
  };
  int report[2], input[2];
  if (::pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0) return cannot("cannot create a pipe", errno);
  const Descriptor read_end(report[0]);
  ChildResult result;
  pid_t child = -1;
  {
    const Descriptor write_end(report[1]);
    if (::pipe2(input, O_CLOEXEC) != 0) return cannot("cannot create a pipe", errno);
    const Descriptor input_read(input[0]);
    {
      const Descriptor input_write(input[1]);
      // Does not block, because the input fits into the pipe.
      if (::write(input_write.get(), setup.input.data(), setup.input.size()) !=
          static_cast<ssize_t>(setup.input.size()))
        return cannot("cannot write the input", errno);
    }
    const int file = setup.file >= 0 ? setup.file : input_read.get();
    BP_ASSIGN(child, isolate::spawn({setup.program, setup.arguments, setup.environment}, {write_end.get(), file},
                                    input_read.get()));
  }
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (process.get() < 0) {
    // ESRCH: the framework ignores SIGCHLD or reaps all children, and the child no longer exists. Other errors: the
    // system provides no descriptor of the process.
    const int error = errno;
    ::kill(-child, SIGKILL);
    if (error != ESRCH) {
      ::kill(child, SIGKILL);  // it may have joined another group
      ::waitpid(child, nullptr, 0);
      return cannot("cannot get a descriptor of the child process", error);
    }
    listen(read_end.get(), result.output);
    return result;
  }
  result.timed_out = !await(process.get(), read_end.get(), setup.limit, result.output);
  // Kills the process group before its leader is reaped. After that, the kernel could reuse the group's number. The
  // leader may have joined another group.
  ::kill(-child, SIGKILL);
  ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  // A process that is stuck in a driver does not end even if it is killed. This function waits kDying at most.
  if (result.timed_out && !await(process.get(), read_end.get(), kDying, result.output)) return result;
  siginfo_t end{};
  int reaped;
  do reaped = ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(process.get()), &end, WEXITED);
  while (reaped != 0 && errno == EINTR);
  if (reaped == 0 && end.si_code == CLD_EXITED) result.exit_code = end.si_status;
  if (reaped == 0 && (end.si_code == CLD_KILLED || end.si_code == CLD_DUMPED)) result.signal = end.si_status;
  return result;
}

std::vector<std::string> minimal_environment() {
  std::vector<std::string> passed;
  if (elevated()) return passed;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::ranges::any_of(kPassed, [&](std::string_view pattern) {
          return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
        }))
      passed.emplace_back(text);
  }
  return passed;
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
#include "isolate/serve/sandbox.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "isolate/call_filter.h"
#include "isolate/descriptor.h"

namespace backplane::isolate {
namespace {

namespace fs = std::filesystem;

void limit(__rlimit_resource resource, rlim_t value) {
  rlimit limits{};
  if (getrlimit(resource, &limits) != 0) return;
  limits.rlim_cur = limits.rlim_max = std::min(limits.rlim_max, value);
  setrlimit(resource, &limits);
}

// ---- files ----------------------------------------------------------------------------------------------------------

constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
// The access rights of Landlock's first version. The rights below are added if the kernel's version has them.
constexpr uint64_t kFirstRights = (uint64_t{1} << 13) - 1;
constexpr uint64_t kRefer = uint64_t{1} << 13, kTruncate = uint64_t{1} << 14, kIoctl = uint64_t{1} << 15;
// Since Landlock's sixth version: no signals to processes outside of the sandbox.
constexpr uint64_t kSignals = uint64_t{1} << 1;

class Rules {
 public:
  explicit Rules(int version) {
    handled_ =
        kFirstRights | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0) | (version >= 5 ? kIoctl : 0);
    // The system's header may be older than the kernel.
    const struct { uint64_t files, network, scoped; } attributes = {handled_, 0, kSignals};
    const size_t known = version >= 6 ? sizeof attributes : sizeof attributes.files;
    set_ = Descriptor(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, known, 0)));
  }
  void allow(const std::string& path, uint64_t rights) const {
    const Descriptor file(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat state {};
    if (!file || ::fstat(file.get(), &state) != 0) return;
    constexpr uint64_t kOfFiles =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | kTruncate | kIoctl;
    landlock_path_beneath_attr rule{};
    rule.allowed_access = rights & handled_ & (S_ISDIR(state.st_mode) ? ~uint64_t{0} : kOfFiles);
    rule.parent_fd = file.get();
    ::syscall(SYS_landlock_add_rule, set_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  }
  uint64_t all() const { return handled_; }
  bool enforce() const { return set_ && ::syscall(SYS_landlock_restrict_self, set_.get(), 0) == 0; }

 private:
  uint64_t handled_ = 0;
  Descriptor set_;
};

// Allows reading the folders in a list separated by ':', such as LD_LIBRARY_PATH.
void allow_list(const Rules& rules, const char* list) {
  if (!list) return;
  const std::string_view text = list;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) rules.allow(std::string(text.substr(begin, end - begin)), kRead);
    begin = end + 1;
  }
}

bool restrict_files(const SandboxSettings& settings) {
  const auto version =
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
  if (version < 1) return false;
  const Rules rules(version);
  for (const char* folder : {"/usr", "/lib", "/lib64", "/opt", "/etc", "/proc", "/sys"}) rules.allow(folder, kRead);
  rules.allow(fs::path(settings.library).parent_path().string(), kRead);
  for (const std::string& path : settings.readable) rules.allow(path, kRead);
  allow_list(rules, std::getenv("LD_LIBRARY_PATH"));
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
    rules.allow(device, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
  if (settings.kind == Sandbox::kDrivers) {
    rules.allow("/dev", rules.all());
    rules.allow("/tmp", rules.all());
    for (const char* variable : {"TMPDIR", "XDG_CACHE_HOME", "CUDA_CACHE_PATH", "POCL_CACHE_DIR"})
      if (const char* folder = std::getenv(variable)) rules.allow(folder, rules.all());
    if (const char* home = std::getenv("HOME")) {
      rules.allow(std::string(home) + "/.cache", rules.all());
      rules.allow(std::string(home) + "/.nv", rules.all());
    }
  }
  return rules.enforce();
}

// ---- calls into the kernel ------------------------------------------------------------------------------------------

constexpr int kFchmodat2 = 452;  // newer than the system's header

bool restrict_calls(Sandbox kind) {
  // Calls that affect other processes or the kernel itself, or that leave the process group, which the loader kills as
  // a whole. kStrict and kDrivers refuse them.
  constexpr int kNever[] = {SYS_ptrace,
                            SYS_process_vm_readv,
                            SYS_process_vm_writev,
                            SYS_kexec_load,
                            SYS_kexec_file_load,
                            SYS_init_module,
                            SYS_finit_module,
                            SYS_delete_module,
                            SYS_reboot,
                            SYS_mount,
                            SYS_umount2,
                            SYS_pivot_root,
                            SYS_chroot,
                            SYS_swapon,
                            SYS_swapoff,
                            SYS_bpf,
                            SYS_unshare,
                            SYS_setns,
                            SYS_keyctl,
                            SYS_add_key,
                            SYS_request_key,
                            SYS_userfaultfd,
                            SYS_acct,
                            SYS_settimeofday,
                            SYS_clock_settime,
                            SYS_sethostname,
                            SYS_setdomainname,
                            SYS_open_by_handle_at,
                            SYS_io_uring_setup,
                            SYS_pidfd_getfd,
                            SYS_kcmp,
                            SYS_perf_event_open,
                            SYS_setpgid,
                            SYS_setsid};
  // Also new programs, sockets, shared memory and queues that outlive the process, priorities, and changes of file
  // permissions, owners, times and attributes, which Landlock does not restrict.
  constexpr int kStrict[] = {
    SYS_execve,
    SYS_execveat,
    SYS_socket,
    SYS_shmget,
    SYS_msgget,
    SYS_semget,
    SYS_mq_open,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    kFchmodat2,
    SYS_setpriority,
    SYS_ioprio_set,
#if defined(__x86_64__)
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
#endif
  };
  CallFilter filter;
  filter.refuse(kNever);
  if (kind == Sandbox::kStrict) filter.refuse(kStrict);
  filter.protect_framework();
  if (kind == Sandbox::kStrict) {
    // The numbers of threads are not known here, so a thread sets its own scheduling only as number 0. Its processors
    // (SYS_sched_setaffinity) are often set by another thread, so they may be set for other processes too.
    const auto self = static_cast<uint32_t>(::getpid());
    for (const int call : {SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr})
      filter.decide_by(call, 0, {0, self}, true);
  }
  if (kind == Sandbox::kDrivers) filter.decide_by(SYS_socket, 0, {AF_UNIX}, true);
  return filter.enforce();
}

// Gives up the rights of root, with which a process can read and change others in spite of Landlock.
bool drop_capabilities() {
  __user_cap_header_struct header{};
  header.version = _LINUX_CAPABILITY_VERSION_3;
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return ::syscall(SYS_capset, &header, none) == 0;
}

}  // namespace

Restrictions enter_sandbox(const SandboxSettings& settings) {
  limit(RLIMIT_CORE, 0);
  Restrictions result{"limits", ""};
  const auto note = [&](bool entered, const char* what) {
    std::string& list = entered ? result.in_force : result.lacking;
    list += (list.empty() ? "" : ", ") + std::string(what);
  };
  note(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  if (settings.kind == Sandbox::kOff) return result;
  struct sysinfo memory {};
  if (settings.kind == Sandbox::kStrict && settings.limits_memory && sysinfo(&memory) == 0)
    limit(RLIMIT_DATA, rlim_t{memory.totalram} * memory.mem_unit);
  note(restrict_files(settings), "files (Landlock)");
  note(restrict_calls(settings.kind), "system calls (seccomp)");
  if (settings.kind == Sandbox::kStrict) note(drop_capabilities(), "no capabilities");
  return result;
}

}  // namespace backplane::isolate

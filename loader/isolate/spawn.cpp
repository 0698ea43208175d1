// SPDX-License-Identifier: Apache-2.0
#include "isolate/spawn.h"

#include <fcntl.h>
#include <spawn.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "isolate/descriptor.h"

namespace backplane::isolate {
namespace {

constexpr int kFirst = 3;

// Returns a NULL-terminated list of pointers into `texts`.
std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

class Setup {
 public:
  Setup(const std::vector<Descriptor>& descriptors, const Descriptor& input) {
    posix_spawn_file_actions_init(&files_);
    if (input)
      posix_spawn_file_actions_adddup2(&files_, input.get(), STDIN_FILENO);
    else
      posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int next = kFirst;
    for (const Descriptor& each : descriptors) posix_spawn_file_actions_adddup2(&files_, each.get(), next++);
    posix_spawn_file_actions_addclosefrom_np(&files_, next);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Setup() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  Setup(const Setup&) = delete;

  int spawn(pid_t& out_child, const Program& program) const {
    std::vector<std::string> words = program.arguments;
    words.insert(words.begin(), program.file.string());
    return posix_spawn(&out_child, program.file.c_str(), &files_, &attributes_, pointers(words).data(),
                       pointers(program.environment).data());
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<pid_t> spawn(const Program& program, const std::vector<int>& descriptors, int input) {
  const auto cannot = [&](const char* what, int error) {
    return Status(error == EPERM || error == EACCES ? BP_PERMISSION_DENIED : BP_UNSUPPORTED,
                  std::string(what) + " for " + program.file.string() + ": " + std::strerror(error));
  };
  // Copies each descriptor to a number above those of the new program. dup2 of a descriptor onto itself would not clear
  // its close-on-exec flag.
  const auto copy = [&](int each) {
    return Descriptor(::fcntl(each, F_DUPFD_CLOEXEC, kFirst + static_cast<int>(descriptors.size())));
  };
  std::vector<Descriptor> copies;
  for (const int each : descriptors) {
    copies.push_back(copy(each));
    if (!copies.back()) return cannot("cannot copy a descriptor", errno);
  }
  const Descriptor own_input = input >= 0 ? copy(input) : Descriptor();
  if (input >= 0 && !own_input) return cannot("cannot copy a descriptor", errno);
  pid_t child = -1;
  if (const int error = Setup(copies, own_input).spawn(child, program)) return cannot("cannot start a process", error);
  return child;
}

}  // namespace backplane::isolate

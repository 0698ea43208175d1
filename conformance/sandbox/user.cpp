// SPDX-License-Identifier: Apache-2.0
#include "sandbox/user.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace backplane::conform {
namespace {

struct Account {
  uid_t user = 0;
  gid_t group = 0;
  std::string home;
};

Account account_of(const std::string& name) {
  errno = 0;
  const passwd* const entry = getpwnam(name.c_str());
  if (entry == nullptr) throw std::runtime_error(fmt::format("there is no user '{}'", name));
  return {entry->pw_uid, entry->pw_gid, entry->pw_dir};
}

}  // namespace

void check_user(const std::string& name) {
  const Account account = account_of(name);
  if (account.user == 0) throw std::runtime_error(fmt::format("'{}' has all rights: choose another user", name));
  if (account.user == geteuid())
    throw std::runtime_error(fmt::format("'{}' is the user that judges the plugin: choose another", name));
  if (geteuid() != 0)
    throw std::runtime_error("only root can start processes as another user: run the command with sudo");
}

void become_user(const std::string& name) {
  const Account account = account_of(name);
  const auto require = [&](bool done, const char* what) {
    if (!done) throw std::runtime_error(fmt::format("user '{}': {}: {}", name, what, std::strerror(errno)));
  };
  require(initgroups(name.c_str(), account.group) == 0, "its groups cannot be set");
  require(setresgid(account.group, account.group, account.group) == 0, "its group cannot be set");
  require(setresuid(account.user, account.user, account.user) == 0, "it cannot be set");
  // The kernel has made this process's files in /proc those of root, but its cases count descriptors there.
  require(prctl(PR_SET_DUMPABLE, 1) == 0, "its files in /proc cannot be read");
  require(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "it would outlive the harness");  // the change of user cleared it
  for (const char* variable : {"TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"})
    unsetenv(variable);
  setenv("HOME", account.home.c_str(), 1);
  setenv("USER", name.c_str(), 1);
  setenv("LOGNAME", name.c_str(), 1);
}

}  // namespace backplane::conform

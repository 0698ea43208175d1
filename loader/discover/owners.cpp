// SPDX-License-Identifier: Apache-2.0
#include "discover/owners.h"

#include <dlfcn.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

namespace backplane {
namespace {

struct CloseFile {
  void operator()(FILE* file) const { std::fclose(file); }
};
using Stream = std::unique_ptr<FILE, CloseFile>;

constexpr size_t kMaxLine = 64 << 10;  // bytes of a line of /etc/group

// The owner of the loader, or of the program that contains it. Root if it is unknown.
uid_t find_own_owner() {
  Dl_info info{};
  struct stat seen {};
  const bool is_known = dladdr(reinterpret_cast<const void*>(&is_trusted_owner), &info) && info.dli_fname;
  const char* const file = is_known && info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe";
  return ::stat(file, &seen) == 0 ? seen.st_uid : 0;
}

// The user to whom files of users outside this user namespace seem to belong; root if this is the initial namespace.
uid_t find_outside_owner() {
  unsigned inside = 0, outside = 0, count = 0, user = 65534;
  const Stream map(std::fopen("/proc/self/uid_map", "re"));
  if (!map || std::fscanf(map.get(), "%u %u %u", &inside, &outside, &count) != 3 || count == UINT32_MAX) return 0;
  if (const Stream file(std::fopen("/proc/sys/kernel/overflowuid", "re")); file)
    if (std::fscanf(file.get(), "%u", &user) != 1) user = 65534;
  return user;
}

}  // namespace

bool is_trusted_owner(uid_t user) {
  static const uid_t kOwn = find_own_owner(), kOutside = find_outside_owner();
  return user == 0 || user == ::geteuid() || user == kOwn || user == kOutside;
}

bool has_other_members(gid_t group, uid_t owner) {
  const auto is_allowed = [&](uid_t user) { return user == 0 || user == owner || user == ::geteuid(); };
  std::string buffer(kMaxLine, '\0');
  std::set<std::string> allowed;
  if (const Stream users(std::fopen("/etc/passwd", "re")); users) {
    passwd line{}, *found = nullptr;
    while (::fgetpwent_r(users.get(), &line, buffer.data(), buffer.size(), &found) == 0 && found) {
      if (is_allowed(found->pw_uid))
        allowed.insert(found->pw_name);
      else if (found->pw_gid == group)
        return true;
    }
  }
  if (const Stream groups(std::fopen("/etc/group", "re")); groups) {
    struct group line {
    }, *found = nullptr;
    while (::fgetgrent_r(groups.get(), &line, buffer.data(), buffer.size(), &found) == 0 && found) {
      if (found->gr_gid != group) continue;
      for (char** member = found->gr_mem; *member; ++member)
        if (!allowed.contains(*member)) return true;
      return false;
    }
  }
  return group != 0 && group != owner;
}

}  // namespace backplane

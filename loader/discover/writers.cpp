// SPDX-License-Identifier: Apache-2.0
#include "discover/writers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <deque>
#include <string>
#include <system_error>

#include "host/variable.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // the kernel's limit for one path

class Walk {
 public:
  explicit Walk(const fs::path& path) : path_(path) { push_front(path.is_absolute() ? path : fs::absolute(path)); }

  Refusal run() {
    fs::path at = "/";
    struct stat seen {};
    if (::lstat(at.c_str(), &seen) != 0) return {};
    bool in_shared = false;  // `at` is world-writable and has the sticky bit
    if (Refusal refusal = check_folder(at, seen, in_shared)) return refusal;
    for (int links = 0; !parts_.empty();) {
      const fs::path part = parts_.front();
      parts_.pop_front();
      if (part == "/" || part == "." || part.empty()) continue;
      if (part == "..") {
        at = at.parent_path();
        in_shared = false;
        continue;
      }
      const fs::path next = at / part;
      if (::lstat(next.c_str(), &seen) != 0) return {};
      const bool is_link = S_ISLNK(seen.st_mode), is_folder = S_ISDIR(seen.st_mode);
      if (in_shared && !is_folder) return refused(at, "anybody can write it");
      if ((in_shared || elevated()) && seen.st_uid != 0 && (elevated() || seen.st_uid != ::geteuid()))
        return refused(next, elevated() ? "it does not belong to root" : "it belongs to another user");
      if (is_link) {
        std::error_code error;
        const fs::path target = fs::read_symlink(next, error);
        if (error || ++links > kMaxLinks) return {};
        if (target.is_absolute()) at = "/", in_shared = false;
        push_front(target);
      } else if (is_folder) {
        at = next;
        if (Refusal refusal = check_folder(at, seen, in_shared)) return refusal;
      } else if (Refusal refusal = check_mode(next, seen.st_mode)) {
        return refusal;
      }
    }
    return {};
  }

 private:
  void push_front(const fs::path& path) { parts_.insert(parts_.begin(), path.begin(), path.end()); }

  Refusal refused(const fs::path& what, std::string_view why) const {
    return {BP_REFUSED_UNTRUSTED, what == path_
                                      ? fmt::format("{} is not used: {}", path_.string(), why)
                                      : fmt::format("{} is not used: {}: {}", path_.string(), what.string(), why)};
  }

  Refusal check_mode(const fs::path& what, mode_t mode) const {
    if (mode & S_IWOTH) return refused(what, "anybody can write it; chmod o-w fixes that");
    if (elevated() && mode & S_IWGRP)
      return refused(what, "its group can write it, and this process has elevated privileges");
    return {};
  }

  Refusal check_folder(const fs::path& folder, const struct stat& seen, bool& out_shared) const {
    out_shared = (seen.st_mode & S_IWOTH) && (seen.st_mode & S_ISVTX);
    return out_shared ? Refusal() : check_mode(folder, seen.st_mode);
  }

  const fs::path& path_;
  std::deque<fs::path> parts_;
};

}  // namespace

Refusal check_writers(const fs::path& path, CheckedFolders* checked) {
  if (!checked) return Walk(path).run();
  const std::string folder = path.parent_path().string();
  struct stat seen {};
  if (checked->contains(folder) && !elevated() && ::lstat(path.c_str(), &seen) == 0 && S_ISREG(seen.st_mode) &&
      !(seen.st_mode & S_IWOTH))
    return {};
  Refusal refusal = Walk(path).run();
  if (!refusal && path.is_absolute()) checked->insert(folder);
  return refusal;
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
#include "discover/writers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <deque>
#include <string>
#include <system_error>

#include "discover/owners.h"
#include "host/variable.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // the kernel's limit for one path

bool is_of(const File& file, const struct stat& seen) {
  return seen.st_dev == file.facts().device && seen.st_ino == file.facts().inode;
}

class Walk {
 public:
  explicit Walk(const fs::path& path) : path_(path) {}

  Refusal run() {
    std::error_code unknown;
    push_front(fs::absolute(path_, unknown));
    if (unknown) return refused(path_, "the path of the working folder is unknown");
    if (Refusal refusal = enter("/")) return refusal;
    for (int links = 0; !parts_.empty();) {
      const fs::path part = parts_.front();
      parts_.pop_front();
      if (part == "/" || part == "." || part.empty()) continue;
      if (part == "..") {
        if (Refusal refusal = enter(at_.parent_path())) return refusal;
        continue;
      }
      const fs::path next = at_ / part;
      struct stat seen {};
      if (::lstat(next.c_str(), &seen) != 0) return {};
      const bool is_link = S_ISLNK(seen.st_mode), is_folder = S_ISDIR(seen.st_mode);
      if (in_shared_ && !is_folder)
        return refused(at_, fmt::format("{}: move the file into a folder of your own", shared_by_));
      // A link cannot be changed, only replaced by users who can write to its folder, so its owner does not matter.
      // With elevated privileges, everything must belong to root.
      if (!is_link || in_shared_ || elevated())
        if (Refusal refusal = check_owner(next, seen.st_uid)) return refusal;
      if (is_link) {
        std::error_code error;
        const fs::path target = fs::read_symlink(next, error);
        if (error || ++links > kMaxLinks) return {};
        if (target.is_absolute())
          if (Refusal refusal = enter("/")) return refusal;
        push_front(target);
      } else if (is_folder) {
        if (Refusal refusal = enter(next, seen)) return refusal;
      } else if (Refusal refusal = check_mode(next, seen)) {
        return refusal;
      } else {
        found_ = parts_.empty();
        file_ = seen;
      }
    }
    return {};
  }

  // Whether the path leads to a file. All folders on the way to it have then been checked.
  bool found() const { return found_; }
  // Whether the path leads to this open file.
  bool found(const File& file) const { return found_ && is_of(file, file_); }

 private:
  void push_front(const fs::path& path) { parts_.insert(parts_.begin(), path.begin(), path.end()); }

  Refusal refused(const fs::path& what, std::string_view why) const {
    return {BP_REFUSED_UNTRUSTED, what == path_
                                      ? fmt::format("{} is not used: {}", path_.string(), why)
                                      : fmt::format("{} is not used: {}: {}", path_.string(), what.string(), why)};
  }

  Refusal check_owner(const fs::path& what, uid_t owner) const {
    if (elevated() ? owner == 0 : is_trusted_owner(owner)) return {};
    return refused(what, elevated() ? "it does not belong to root; chown root fixes that"
                                    : fmt::format("it belongs to another user (number {}); install it as root or as "
                                                  "the user of this process, or chown it",
                                                  owner));
  }

  // Says how other users can write to `what`, as a text that completes "it is …", with the remedy. Empty: they cannot.
  static std::string_view writers_of(const fs::path& what, const struct stat& seen) {
    if (seen.st_mode & S_IWOTH) return "world-writable; chmod o-w fixes that";
    if (!(seen.st_mode & S_IWGRP)) return {};
    if (elevated()) return "writable by its group, and this process has elevated privileges; chmod g-w fixes that";
    // In a file with an access control list, the group's bits are the most that the list can grant to users and groups.
    if (::getxattr(what.c_str(), "system.posix_acl_access", nullptr, 0) > 0)
      return "writable by others in its access control list; setfacl -b or chmod g-w fixes that";
    if (has_other_members(seen.st_gid, seen.st_uid))
      return "writable by its group, which may have other members; chmod g-w fixes that";
    return {};
  }

  Refusal check_mode(const fs::path& what, const struct stat& seen) const {
    const std::string_view writers = writers_of(what, seen);
    return writers.empty() ? Refusal() : refused(what, fmt::format("it is {}", writers));
  }

  // Continues in `folder`, whose attributes are `seen`. If it has the sticky bit, files and folders in it can be
  // replaced only by their owners.
  Refusal enter(const fs::path& folder, const struct stat& seen) {
    at_ = folder;
    const std::string_view writers = writers_of(folder, seen);
    in_shared_ = !writers.empty() && (seen.st_mode & S_ISVTX);
    shared_by_ = fmt::format("it is {}", writers.substr(0, writers.find(';')));
    if (!in_shared_ && !writers.empty()) return refused(folder, fmt::format("it is {}", writers));
    return {};
  }

  Refusal enter(const fs::path& folder) {
    struct stat seen {};
    if (::lstat(folder.c_str(), &seen) != 0) return refused(folder, "its attributes cannot be read");
    if (Refusal refusal = check_owner(folder, seen.st_uid)) return refusal;
    return enter(folder, seen);
  }

  const fs::path& path_;
  std::deque<fs::path> parts_;
  fs::path at_;             // the folder that the walk is in, without links
  bool in_shared_ = false;  // other users can write to `at_`, and it has the sticky bit
  std::string shared_by_;   // how other users can write to `at_`, as a sentence
  bool found_ = false;
  struct stat file_ {};  // the file to which the path leads; valid if found_
};

// `opened` and `checked` may be null.
Refusal check(const fs::path& path, const File* opened, CheckedFolders* checked) {
  const std::string folder = path.parent_path().string();
  struct stat seen {};
  if (checked && checked->contains(folder) && !elevated() && ::lstat(path.c_str(), &seen) == 0 &&
      S_ISREG(seen.st_mode) && !(seen.st_mode & (S_IWOTH | S_IWGRP)) && is_trusted_owner(seen.st_uid) &&
      (!opened || is_of(*opened, seen)))
    return {};
  Walk walk(path);
  if (Refusal refusal = walk.run()) return refusal;
  if (opened && opened->regular() && !walk.found(*opened))  // callers refuse other kinds of files
    return {
        BP_REFUSED_UNTRUSTED,
        fmt::format("{} is not used: {}", path.string(),
                    walk.found() ? "it was replaced while it was being checked: try again"
                                 : "its path leads to no file: deleted files and files in memory are not accepted")};
  if (checked && walk.found() && path.is_absolute()) checked->insert(folder);
  return {};
}

}  // namespace

Refusal check_writers(const fs::path& path, CheckedFolders* checked) {
  return check(path, nullptr, checked);
}

Refusal check_writers(const fs::path& path, const File& opened, CheckedFolders* checked) {
  return check(path, &opened, checked);
}

}  // namespace backplane

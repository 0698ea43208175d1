// SPDX-License-Identifier: Apache-2.0
#include "cli/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace backplane::cli {
namespace {

namespace fs = std::filesystem;

// Owns a descriptor, which is negative if opening failed.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { (void)close(); }

  int get() const { return descriptor_; }
  // Some file systems report only here that the disk is full.
  bool close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISLNK(mode) ? "a symbolic link" : "a device";
}

[[noreturn]] void refuse(const fs::path& file, const char* what, int error) {
  throw FileError(fmt::format("'{}' cannot be {}: {}", file.string(), what, std::strerror(error)));
}

[[noreturn]] void refuse_kind(const fs::path& file, mode_t mode) {
  throw FileError(fmt::format("'{}' is {}, not a regular file", file.string(), kind_of(mode)));
}

[[noreturn]] void refuse_size(const fs::path& file, uint64_t bytes, uint64_t most) {
  throw FileError(fmt::format("'{}' has {} bytes, more than the {} that can be read", file.string(), bytes, most));
}

// A regular file of at most `most` bytes. Never blocks.
Descriptor open_regular(const fs::path& file, uint64_t most, int flags, uint64_t& out_bytes) {
  Descriptor opened(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags));
  const int error = errno;
  struct stat info = {};
  if (opened.get() < 0) {
    // A socket and a link that is not followed cannot be opened, with errors that do not say so.
    const bool is_seen = fstatat(AT_FDCWD, file.c_str(), &info, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) == 0;
    if (is_seen && (error == ENXIO || error == ELOOP) && !S_ISREG(info.st_mode)) refuse_kind(file, info.st_mode);
    refuse(file, "opened", error);
  }
  if (fstat(opened.get(), &info) != 0) refuse(file, "examined", errno);
  if (!S_ISREG(info.st_mode)) refuse_kind(file, info.st_mode);
  out_bytes = static_cast<uint64_t>(info.st_size);
  if (out_bytes > most) refuse_size(file, out_bytes, most);
  return opened;
}

// Fills `out` unless the file ends before. Returns the number of bytes.
size_t read_some(const Descriptor& from, const fs::path& file, char* out, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(from.get(), out + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(file, "read", errno);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

std::string read_regular(const fs::path& file, uint64_t most, int flags) {
  uint64_t size = 0;
  const Descriptor opened = open_regular(file, most, flags, size);
  std::string bytes;
  // One more byte than the size, so that the end of the file is seen without another allocation.
  for (size_t wanted = size + 1;; wanted += bytes.size() + (size_t{1} << 16)) {
    const size_t before = bytes.size();
    bytes.resize(wanted);
    bytes.resize(before + read_some(opened, file, bytes.data() + before, wanted - before));
    if (bytes.size() > most) refuse_size(file, bytes.size(), most);
    if (bytes.size() < wanted) return bytes;
    // The file grew meanwhile, or it is one of the kernel's, which have the size 0.
  }
}

// Returns false, with errno set, if not all bytes can be written.
bool write_all(const Descriptor& to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(to.get(), bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

void write_through(const fs::path& file, std::string_view bytes) {
  Descriptor opened(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0666));
  if (opened.get() < 0 || !write_all(opened, bytes) || !opened.close()) refuse(file, "written", errno);
}

// Creates an empty file in the folder of `file`. Returns a negative descriptor, with errno set, if that is not
// possible.
Descriptor create_near(const fs::path& file, fs::path& out_name) {
  static std::atomic<unsigned> count = 0;
  constexpr int kTries = 100;  // an earlier process with this number may have left files
  for (int i = 1;; ++i) {
    out_name = file.parent_path() / fmt::format(".backplane-{}-{}.part", getpid(), count++);
    // The umask and the folder's default access control list apply, as they do to any new file.
    Descriptor created(::open(out_name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (created.get() >= 0 || errno != EEXIST || i == kTries) return created;
  }
}

// Sets an open file's owner, group and permissions to those of `other`. Returns false if that is not allowed.
bool make_alike(const Descriptor& created, const struct stat& other) {
  struct stat own = {};
  if (fstat(created.get(), &own) != 0) return false;
  if ((own.st_uid != other.st_uid || own.st_gid != other.st_gid) &&
      fchown(created.get(), other.st_uid, other.st_gid) != 0)
    return false;
  return fchmod(created.get(), other.st_mode & 07777) == 0;
}

// Writes to a new file, which then takes the place of `file`. `before` is the file's present state, null if there is no
// such file. Returns false, with `file` unchanged, if the folder allows no such exchange, or if the new file cannot
// have the owner and permissions of `file`.
bool replace(const fs::path& file, std::string_view bytes, const struct stat* before) {
  fs::path name;
  Descriptor created = create_near(file, name);
  if (created.get() < 0) {
    if (before == nullptr || errno == EACCES || errno == EPERM || errno == EROFS) return false;
    refuse(file, "written", errno);
  }
  if (before != nullptr && !make_alike(created, *before)) {
    ::unlink(name.c_str());
    return false;
  }
  // The content must be on the disk before the earlier one is gone. Some file systems have no such order: EINVAL.
  const bool is_written = write_all(created, bytes) &&
                          (before == nullptr || fsync(created.get()) == 0 || errno == EINVAL) && created.close();
  const int error = errno;
  const bool is_exchanged = is_written && ::rename(name.c_str(), file.c_str()) == 0;
  if (!is_exchanged) ::unlink(name.c_str());
  if (!is_written) refuse(file, "written", error);
  return is_exchanged;
}

}  // namespace

std::string read_file(const fs::path& file, uint64_t most) {
  return read_regular(file, most, 0);
}

std::string read_untrusted_file(const fs::path& file, uint64_t most) {
  return read_regular(file, most, O_NOFOLLOW);
}

void read_pieces(const fs::path& file, uint64_t most, const std::function<void(std::string_view)>& take) {
  uint64_t size = 0, done = 0;
  const Descriptor opened = open_regular(file, most, 0, size);
  std::array<char, 1 << 16> piece;
  for (size_t bytes = piece.size(); bytes == piece.size();) {
    bytes = read_some(opened, file, piece.data(), piece.size());
    if ((done += bytes) > most) refuse_size(file, done, most);
    take({piece.data(), bytes});
  }
}

void write_file(const fs::path& file, std::string_view bytes) {
  struct stat before = {};
  if (lstat(file.c_str(), &before) != 0) {
    if (!replace(file, bytes, nullptr)) write_through(file, bytes);
    return;
  }
  // A new file would not be one of several names, and would lack the access control list.
  const bool is_plain = S_ISREG(before.st_mode) && before.st_nlink == 1 &&
                        lgetxattr(file.c_str(), "system.posix_acl_access", nullptr, 0) < 0;
  if (is_plain && faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) != 0) refuse(file, "written", errno);
  if (!is_plain || !replace(file, bytes, &before)) write_through(file, bytes);
}

}  // namespace backplane::cli

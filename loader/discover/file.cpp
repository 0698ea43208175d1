// SPDX-License-Identifier: Apache-2.0
#include "discover/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace backplane {
namespace {

// Wraps around for times after the year 2262. The owner of a file can set such a time as its modification time, so
// modification times are compared only for equality.
int64_t nanoseconds(const timespec& time) {
  return static_cast<int64_t>(static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec));
}

FileFacts facts_from(const struct stat& seen) {
  return {seen.st_dev, seen.st_ino, static_cast<uint64_t>(seen.st_size), nanoseconds(seen.st_mtim),
          nanoseconds(seen.st_ctim)};
}

}  // namespace

std::string FileFacts::text() const {
  return fmt::format("{} {} {} {} {}", device, inode, size, modified_ns, changed_ns);
}

FileFacts facts_of(const std::filesystem::path& path) {
  struct stat seen {};
  return ::stat(path.c_str(), &seen) == 0 ? facts_from(seen) : FileFacts();
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Refusal File::open(const std::filesystem::path& path) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  struct stat seen {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &seen) != 0)
    return {BP_REFUSED_MISSING,
            fmt::format("{} cannot be read: {}", path.string(), std::generic_category().message(errno))};
  regular_ = S_ISREG(seen.st_mode);
  facts_ = facts_from(seen);
  return {};
}

FileFacts File::facts_now() const {
  struct stat seen {};
  return ::fstat(descriptor_, &seen) == 0 ? facts_from(seen) : FileFacts();
}

bool File::is_empty() const {
  char byte;
  return ::pread(descriptor_, &byte, 1, 0) == 0;
}

size_t File::read(uint64_t offset, void* out, size_t bytes) const {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(descriptor_, static_cast<char*>(out) + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace backplane

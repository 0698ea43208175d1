// SPDX-License-Identifier: Apache-2.0
#include "discover/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace backplane {

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Refusal File::open(const std::filesystem::path& path) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  struct stat facts {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &facts) != 0)
    return {BP_REFUSED_MISSING,
            fmt::format("{} cannot be read: {}", path.string(), std::generic_category().message(errno))};
  regular_ = S_ISREG(facts.st_mode);
  size_ = static_cast<uint64_t>(facts.st_size);
  modified_ns_ = facts.st_mtim.tv_sec * int64_t{1'000'000'000} + facts.st_mtim.tv_nsec;
  return {};
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

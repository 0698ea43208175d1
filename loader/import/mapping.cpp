// SPDX-License-Identifier: Apache-2.0
#include "import/mapping.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace backplane::model {
namespace {

// O_NONBLOCK: opening a named pipe must not wait for a writer.
constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

Status failure(const std::string& name, const char* what, int error) {
  bp_status_t code = BP_IO_ERROR;
  if (error == ENOENT || error == ENOTDIR) code = BP_NOT_FOUND;
  if (error == EACCES || error == EPERM) code = BP_PERMISSION_DENIED;
  if (error == ENOMEM || error == EMFILE || error == ENFILE) code = BP_RESOURCE_EXHAUSTED;
  return Status(code, name + ": " + what + ": " + std::strerror(error));
}

}  // namespace

Result<std::shared_ptr<const Mapping>> Mapping::open(const std::string& path) {
  return map_and_close(::open(path.c_str(), kFlags), path);
}

Result<std::shared_ptr<const Mapping>> Mapping::open_canonical(const std::string& path) {
  open_how how{};
  how.flags = kFlags;
  how.resolve = RESOLVE_NO_SYMLINKS;
  auto descriptor = static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how));
  // Linux before 5.6 and some sandboxes lack openat2. Without it, O_NOFOLLOW refuses a link only in place of the file
  // itself: links in place of its folders are followed.
  if (descriptor < 0 && (errno == ENOSYS || errno == EPERM)) descriptor = ::open(path.c_str(), kFlags | O_NOFOLLOW);
  return map_and_close(descriptor, path);
}

Result<std::shared_ptr<const Mapping>> Mapping::map_and_close(int descriptor, const std::string& path) {
  const std::string name = "file '" + path + "'";
  if (descriptor < 0) return failure(name, "cannot be opened", errno);
  auto mapped = map(descriptor, name);
  ::close(descriptor);
  return mapped;
}

Result<std::shared_ptr<const Mapping>> Mapping::of_descriptor(int descriptor) {
  return map(descriptor, "file descriptor " + std::to_string(descriptor));
}

Result<std::shared_ptr<const Mapping>> Mapping::map(int descriptor, const std::string& name) {
  struct stat info;
  if (::fstat(descriptor, &info) != 0) return failure(name, "cannot be examined", errno);
  if (S_ISDIR(info.st_mode)) return Status(BP_INVALID_ARGUMENT, name + " is a directory; pass the path of a file");
  if (!S_ISREG(info.st_mode))
    return Status(BP_INVALID_ARGUMENT, name + " is not a regular file; copy its content to one");
  if (info.st_size == 0) return Status(BP_INVALID_MODEL, name + " is empty");
  const size_t size = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) return failure(name, "cannot be mapped", errno);
  return std::shared_ptr<const Mapping>(new Mapping(static_cast<const char*>(data), size, descriptor));
}

Mapping::~Mapping() {
  ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace backplane::model

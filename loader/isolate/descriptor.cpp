// SPDX-License-Identifier: Apache-2.0
#include "isolate/descriptor.h"

#include <fcntl.h>

#include <limits>

namespace backplane::isolate {

void Descriptor::leave_standard_streams() {
  const int number = ::fcntl(number_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (number < 0) return;
  ::close(number_);
  number_ = number;
}

Mapping Mapping::of(int file, uint64_t offset, uint64_t bytes, int protection) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t before = offset % page;
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<off_t>::max());
  Mapping mapping;
  if (bytes == 0 || offset > kMost || bytes > kMost - offset) return mapping;
  // Linux before 6.7 refuses a shared mapping of a file that is sealed against writing, even a read-only mapping.
  const int flags = protection & PROT_WRITE ? MAP_SHARED : MAP_PRIVATE;
  void* base = ::mmap(nullptr, before + bytes, protection, flags, file, static_cast<off_t>(offset - before));
  if (base == MAP_FAILED) return mapping;
  mapping.base_ = base;
  mapping.mapped_ = before + bytes;
  mapping.data_ = static_cast<char*>(base) + before;
  return mapping;
}

}  // namespace backplane::isolate

// SPDX-License-Identifier: Apache-2.0
#include "import/read_ahead.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace backplane::model {
namespace {

constexpr size_t kPiece = 4 << 20;
constexpr size_t kSmall = 64 << 20;  // bytes; smaller files gain little from a thread
// A model may name any number of files. Once this many threads are running, further files are read on access.
constexpr int kMaxThreads = 8;
std::atomic<int> g_threads = 0;

size_t memory() {
  return static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

ReadAhead::ReadAhead(int descriptor, size_t bytes) {
  if (bytes < kSmall || bytes > memory() / 2) return;
  descriptor_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (descriptor_ < 0) return;
  try {
    if (++g_threads <= kMaxThreads)
      thread_ = std::thread([this, bytes] {
        run(bytes);
        --g_threads;
      });
    else
      --g_threads;
  } catch (const std::system_error&) {  // without a thread, pages are read on access
    --g_threads;
  }
}

ReadAhead::~ReadAhead() {
  stop_ = true;
  if (thread_.joinable()) {
    if (owner_ == ::getpid())
      thread_.join();
    else
      thread_.detach();  // in a forked child the thread does not exist, so it cannot be joined
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ReadAhead::run(size_t bytes) {
  for (size_t at = 0; at < bytes && !stop_; at += kPiece)
    if (::posix_fadvise(descriptor_, static_cast<off_t>(at), static_cast<off_t>(std::min(kPiece, bytes - at)),
                        POSIX_FADV_WILLNEED) != 0)
      return;
}

}  // namespace backplane::model

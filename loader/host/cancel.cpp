// SPDX-License-Identifier: Apache-2.0
// Calls back when a token is set. That may happen in a signal handler, which can neither lock nor notify. `set`
// therefore writes to an eventfd. One thread of the process reads it, finds the linked tokens that are set, and calls
// back.
#include "host/cancel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/forks.h"

namespace backplane {
namespace {

std::mutex watch_mutex;  // guards the watch of the process
const FreeInChildren<watch_mutex> kFreeInChildren;

}  // namespace

class CancelWatch {
 public:
  // Returns this process's watch. A forked child lacks the parent's thread, and so creates its own watch. Never
  // destroyed, because tokens may be set until the process exits.
  static CancelWatch& get() {
    static CancelWatch* watch = nullptr;
    static pid_t owner = 0;
    const std::lock_guard lock(watch_mutex);
    if (!watch || owner != getpid()) {
      watch = new CancelWatch;  // the parent's watch is left alone; its mutex may be locked
      owner = getpid();
    }
    return *watch;
  }
  // Async-signal-safe.
  static void wake() noexcept {
    const int fd = wake_fd_.load();
    if (fd < 0) return;  // no link was ever created
    const int saved = errno;
    const uint64_t one = 1;
    static_cast<void>(!write(fd, &one, sizeof one));
    errno = saved;
  }

  void add(CancelLink* link) {
    {
      const std::lock_guard lock(mutex_);
      links_.push_back(link);
    }
    if (link->token_.is_set()) wake();
  }
  void remove(CancelLink* link) {
    const std::lock_guard lock(mutex_);  // waits for callbacks, which run while this lock is held
    std::erase(links_, link);
  }

 private:
  CancelWatch() : fd_(eventfd(0, EFD_CLOEXEC)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    try {
      std::thread([this] { look(); }).detach();
    } catch (...) {  // the next link tries again
      ::close(fd_);
      throw;
    }
    wake_fd_.store(fd_);
  }

  void look() {
    for (;;) {
      uint64_t count = 0;
      if (read(fd_, &count, sizeof count) < 0 && errno != EINTR) return;
      const std::lock_guard lock(mutex_);
      std::erase_if(links_, [](CancelLink* link) {
        if (!link->token_.is_set()) return false;
        link->what_(link->self_);
        return true;
      });
    }
  }

  static inline std::atomic<int> wake_fd_{-1};
  const int fd_;
  std::mutex mutex_;
  std::vector<CancelLink*> links_;
};

CancelLink::CancelLink(const bp_cancel_t& token, void (*what)(void* self), void* self)
    : token_(token), what_(what), self_(self) {
  CancelWatch::get().add(this);
}

CancelLink::~CancelLink() {
  CancelWatch::get().remove(this);
}

}  // namespace backplane

void bp_cancel_t::set() noexcept {
  set_.store(1);  // sequentially consistent, like `wake_fd_`: either `wake` sees the descriptor, or `add` sees the flag
  backplane::CancelWatch::wake();
}

// SPDX-License-Identifier: Apache-2.0
// Files that outgrow the process's limit on their size.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <ctime>

namespace backplane {

// While it lives, a call of this thread that would make a file larger than RLIMIT_FSIZE fails with EFBIG. Without it,
// the signal SIGXFSZ ends the process, also for files in memory.
class FileLimitFails {
 public:
  FileLimitFails() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileLimitFails() {
    if (sigismember(&before_, SIGXFSZ) != 0) return;  // it was blocked before, and may have been pending
    const timespec none{};
    sigtimedwait(&signal_, nullptr, &none);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  FileLimitFails(const FileLimitFails&) = delete;
  FileLimitFails& operator=(const FileLimitFails&) = delete;

 private:
  sigset_t signal_, before_;
};

}  // namespace backplane

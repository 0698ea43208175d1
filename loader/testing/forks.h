// SPDX-License-Identifier: Apache-2.0
// Calls that must work in a forked child while threads of its parent make them. Not under the thread sanitizer, which
// does not support forks of programs with several threads.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace backplane::testing {

// Makes a call in 300 forked children, one at a time. Threads of the parent make it all the time, so that a fork finds
// each of its locks held sooner or later. Returns false if the call returns false in a child, crashes it, or hangs for
// 20 seconds.
inline bool works_in_children(const std::function<bool()>& call) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!ends) call();
    });
  }
  int status = 0;
  for (int i = 0; i < 300 && status == 0; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // ends a child that hangs
      ::_exit(call() ? 0 : 1);
    }
    if (child < 0 || ::waitpid(child, &status, 0) != child) status = -1;
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  return status == 0;
}

}  // namespace backplane::testing

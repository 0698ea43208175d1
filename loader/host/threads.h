// SPDX-License-Identifier: Apache-2.0
// The threads of the host, which all backends share instead of starting their own pools.
#pragma once

#include <cstdint>
#include <memory>

#include "backplane/host.h"

namespace backplane {

class Threads {
 public:
  // `count` 0: one thread for each core that the process may use, but no more than cgroup_cpu_limit(). Threads are
  // started by the first loop.
  explicit Threads(uint32_t count);
  ~Threads();

  // The largest number of threads that a loop uses, including the caller.
  uint32_t count() const { return count_; }
  // Documented at bp_host_t.parallel_for in host.h of the ABI. Without memory or threads, the caller runs the rest.
  void parallel_for(const bp_loop_t& loop);

 private:
  struct Arena;
  uint32_t count_;
  std::unique_ptr<Arena> arena_;
};

// Calls work(self) once, on a thread of a pool that exists until the process ends. The pool is created by
// `prepare_enqueue`, or else by the first call. While no thread can be started, the work stays queued. Throws
// std::bad_alloc.
void enqueue(void (*work)(void* self), void* self);
void prepare_enqueue();

}  // namespace backplane

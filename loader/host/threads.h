// SPDX-License-Identifier: Apache-2.0
// The threads that all backends share, so that ten backends do not start ten pools.
#pragma once

#include <cstdint>
#include <memory>

#include "backplane/host.h"

namespace backplane {

class Threads {
 public:
  // `count` 0: one for each core that the process may use. No thread is started before the first loop.
  explicit Threads(uint32_t count);
  ~Threads();

  // The maximum number of threads that a loop uses, the caller included.
  uint32_t count() const { return count_; }
  // See bp_host_t.parallel_for in the ABI's host.h.
  void parallel_for(const bp_loop_t& loop);

 private:
  struct Arena;
  uint32_t count_;
  std::unique_ptr<Arena> arena_;
};

// Calls work(self) once, soon, on a thread of a pool that lasts as long as the process. The pool is created by
// `prepare_enqueue` or by the first call. Throws std::bad_alloc.
void enqueue(void (*work)(void* self), void* self);
void prepare_enqueue();

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
#include "run/tasks.h"

#include <oneapi/tbb/task_arena.h>

#include <utility>

#include "host/tsan.h"

namespace backplane {

void enqueue(std::function<void()> work) {
  // Shared by all sessions; never destroyed, because work may still end while the process does.
  static auto* arena = new tbb::task_arena(tbb::task_arena::automatic, 0);
  auto* shared = new std::function<void()>(std::move(work));
  happens_before(shared);
  arena->enqueue([shared] {
    happens_after(shared);
    (*shared)();
    delete shared;
  });
}

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
#include "testing/standin/group.h"

#include <setjmp.h>
#include <ucontext.h>

#include <cstdlib>
#include <memory>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace standin {
namespace {

// Tells AddressSanitizer which stack is running. `own` stores its bookkeeping for the stack that is left, and is null
// if that stack is not used again.
#ifdef __SANITIZE_ADDRESS__
void leave(void** own, const void* bottom, size_t bytes) {
  __sanitizer_start_switch_fiber(own, bottom, bytes);
}
void arrive(void* own, const void** bottom, size_t* bytes) {
  __sanitizer_finish_switch_fiber(own, bottom, bytes);
}
#else
void leave(void**, const void*, size_t) {}
void arrive(void*, const void**, size_t*) {}
#endif

constexpr size_t kStackBytes = size_t{256} << 10;

// A work item with its own stack. setcontext starts an item. After that, _longjmp switches between items, as it needs
// no system call.
struct Item {
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  ucontext_t first;
  jmp_buf state;
  void* known = nullptr;  // AddressSanitizer's bookkeeping for this stack
  bool started = false, ended = false;
};

struct Group {
  std::vector<std::unique_ptr<Item>> items;  // reused by later groups
  Item* running = nullptr;
  jmp_buf scheduler;
  void* known = nullptr;
  const void* bottom = nullptr;  // of the scheduler's stack; `bytes` is its size
  size_t bytes = 0;
  const Kernel* kernel = nullptr;
  const void* pack = nullptr;
};
thread_local Group group;

void enter() {
  arrive(nullptr, &group.bottom, &group.bytes);
  group.kernel->run_item(group.pack);
  group.running->ended = true;
  leave(nullptr, group.bottom, group.bytes);
  _longjmp(group.scheduler, 1);
}

// Runs the item until its next barrier or its end.
void go_on(Item& item) {
  group.running = &item;
  if (_setjmp(group.scheduler) != 0) {
    arrive(group.known, nullptr, nullptr);
    return;
  }
  leave(&group.known, item.stack.get(), kStackBytes);
  if (item.started) _longjmp(item.state, 1);
  item.started = true;
  getcontext(&item.first);
  item.first.uc_stack.ss_sp = item.stack.get();
  item.first.uc_stack.ss_size = kStackBytes;
  item.first.uc_link = nullptr;
  makecontext(&item.first, enter, 0);
  setcontext(&item.first);
}

void run_group(const Kernel& kernel, const void* pack, const std::array<unsigned, 3>& at,
               const std::array<unsigned, 3>& size) {
  const size_t count = size_t{size[0]} * size[1] * size[2];
  group.kernel = &kernel;
  group.pack = pack;
  while (group.items.size() < count) group.items.push_back(std::make_unique<Item>());
  for (size_t i = 0; i < count; ++i) group.items[i]->started = group.items[i]->ended = false;
  for (bool any = true; any;) {
    any = false;
    for (size_t i = 0; i < count; ++i) {
      Item& item = *group.items[i];
      if (item.ended) continue;
      const unsigned place[] = {static_cast<unsigned>(i % size[0]), static_cast<unsigned>(i / size[0] % size[1]),
                                static_cast<unsigned>(i / size[0] / size[1])};
      if (!item.started) kernel.place(place, at.data(), size.data());
      go_on(item);
      any = any || !item.ended;
    }
  }
}

}  // namespace

void barrier() {
  Item& item = *group.running;
  if (_setjmp(item.state) == 0) {
    leave(&item.known, group.bottom, group.bytes);
    _longjmp(group.scheduler, 1);
  }
  arrive(group.running->known, &group.bottom, &group.bytes);
}

void run(const Kernel& kernel, const void* pack, const std::array<unsigned, 3>& groups,
         const std::array<unsigned, 3>& size) {
  for (unsigned z = 0; z < groups[2]; ++z) {
    for (unsigned y = 0; y < groups[1]; ++y) {
      for (unsigned x = 0; x < groups[0]; ++x) {
        if (kernel.has_barrier != 0) {
          run_group(kernel, pack, {x, y, z}, size);
          continue;
        }
        const unsigned origin[3] = {}, at[] = {x, y, z};
        kernel.place(origin, at, size.data());
        kernel.run_group(pack);
      }
    }
  }
}

}  // namespace standin

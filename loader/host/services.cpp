// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>

#include "host/host.h"
#include "host/shared_memory.h"
#include "host/threads.h"
#include "host/topology.h"
#include "host/workers.h"

namespace backplane {

namespace {

// In bytes. Below this size, copying costs less than a descriptor and a mapping per allocation.
constexpr uint64_t kSharedFrom = 64 << 10;

bool is_alignment(uint64_t alignment) {
  constexpr uint64_t kMaxAlignment = 4096;
  return alignment != 0 && alignment <= kMaxAlignment && (alignment & (alignment - 1)) == 0;
}

}  // namespace

struct Services::Impl {
  explicit Impl(const bp_env_desc_t& desc)
      : self(desc.self),
        framework_loop(desc.parallel_for),
        framework_submit(desc.submit),
        framework_allocate(desc.release ? desc.allocate : nullptr),
        framework_release(desc.allocate ? desc.release : nullptr),
        threads(desc.threads) {}

  void* self;  // `self` of the framework's callbacks
  decltype(bp_env_desc_t::parallel_for) framework_loop;
  decltype(bp_env_desc_t::submit) framework_submit;
  decltype(bp_env_desc_t::allocate) framework_allocate;
  decltype(bp_env_desc_t::release) framework_release;
  Threads threads;
  Workers workers;

  std::once_flag topology_read;
  std::optional<Result<Topology>> topology;
};

Services::Services(const bp_env_desc_t& desc)
    : log_(desc.log_level, desc.log, desc.self), impl_(std::make_unique<Impl>(desc)) {}

Services::~Services() = default;

uint32_t Services::thread_count() const {
  return impl_->threads.count();
}

void Services::parallel_for(const bp_loop_t& loop) {
  if (impl_->framework_loop) return impl_->framework_loop(impl_->self, &loop);
  impl_->threads.parallel_for(loop);
}

Status Services::submit(const bp_task_t& task) try {
  if (impl_->framework_submit) {
    if (const bp_status_t code = impl_->framework_submit(impl_->self, &task))
      return {code, "the framework's `submit` refused a task"};
    return {};
  }
  impl_->workers.submit(task);
  return {};
} catch (const std::system_error& error) {
  return {BP_RESOURCE_EXHAUSTED, std::string("a thread cannot be started: ") + error.what()};
}

void* Services::allocate(uint64_t bytes, uint64_t alignment) {
  if (!is_alignment(alignment)) return nullptr;
  if (impl_->framework_allocate) return impl_->framework_allocate(impl_->self, bytes, alignment);
  void* memory = nullptr;
  const uint64_t at_least = std::max<uint64_t>(alignment, sizeof(void*));
  return posix_memalign(&memory, at_least, std::max<uint64_t>(bytes, 1)) == 0 ? memory : nullptr;
}

void* Services::allocate_shareable(uint64_t bytes, uint64_t alignment) {
  if (is_alignment(alignment) && bytes >= kSharedFrom && !impl_->framework_allocate)
    if (const auto block = allocate_shared(bytes))
      return block->address;  // otherwise descriptors or memory are exhausted: not shared
  return allocate(bytes, alignment);
}

void Services::release(void* memory, uint64_t bytes, uint64_t alignment) {
  if (!memory) return;
  if (impl_->framework_release) return impl_->framework_release(impl_->self, memory, bytes, alignment);
  if (!release_shared(memory)) std::free(memory);
}

Status Services::topology(bp_topology_t& out) {
  std::call_once(impl_->topology_read, [&] { impl_->topology.emplace(Topology::read()); });
  const Result<Topology>& topology = *impl_->topology;
  if (!topology.ok()) return topology.status();
  out = topology->table();
  return {};
}

}  // namespace backplane

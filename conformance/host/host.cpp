// SPDX-License-Identifier: Apache-2.0
#include "host/host.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "host/container.h"
#include "host/detail.h"

namespace backplane::conform {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

struct Host::Slots {
  static Host& self(const bp_host_t* host) { return *static_cast<Host*>(host->self); }

  static void log(const bp_host_t*, uint32_t, bp_text_t) {}
  static uint32_t tracing(const bp_host_t* host) { return self(host).tracing_; }
  static void trace(const bp_host_t* host, const bp_span_t* span) {
    if (span == nullptr) return;
    Host& h = self(host);
    const std::lock_guard lock(h.mutex_);
    h.spans_.push_back({span->kind, span->begin, span->end, {span->nodes, span->nodes + span->node_count}});
  }

  static void* allocate(const bp_host_t* host, uint64_t bytes, uint64_t alignment) {
    Host& h = self(host);
    uint64_t left = h.left_;
    while (left != UINT64_MAX && left != 0 && !h.left_.compare_exchange_weak(left, left - 1)) continue;
    const bool sound = alignment != 0 && (alignment & (alignment - 1)) == 0 && alignment <= 4096;
    const uint64_t rounded = sound ? (bytes / alignment + 1) * alignment : 0;
    void* memory = left == 0 || rounded < bytes
                       ? nullptr
                       : std::aligned_alloc(std::max<uint64_t>(alignment, 8), std::max<uint64_t>(rounded, 8));
    const std::lock_guard lock(h.mutex_);
    if (!sound) h.misuse_ = "requested memory with alignment " + std::to_string(alignment);
    if (memory == nullptr) {
      ++h.failures_;
      return nullptr;
    }
    h.blocks_[memory] = {bytes, alignment};
    return memory;
  }

  static void release(const bp_host_t* host, void* memory, uint64_t bytes, uint64_t alignment) {
    if (memory == nullptr) return;
    Host& h = self(host);
    const std::lock_guard lock(h.mutex_);
    const auto block = h.blocks_.find(memory);
    if (block == h.blocks_.end()) {
      h.misuse_ = "released memory that was not allocated";
      return;
    }
    if (block->second.bytes != bytes || block->second.alignment != alignment) {
      h.misuse_ = "allocated " + std::to_string(block->second.bytes) + " bytes, but released them with size " +
                  std::to_string(bytes) + " or another alignment";
    }
    h.blocks_.erase(block);
    std::free(memory);
  }

  // Splits the loop into at most one piece per thread. A loop inside a loop's body runs on the calling thread.
  static void parallel_for(const bp_host_t* host, const bp_loop_t* loop) {
    static thread_local bool inside = false;
    const uint64_t count = loop->count;
    if (count == 0) return;
    const uint64_t pieces =
        inside ? 1 : std::clamp<uint64_t>(count / std::max<uint64_t>(loop->grain, 1), 1, self(host).threads_);
    const auto run = [&](uint64_t piece) {
      const bool outer = std::exchange(inside, true);
      loop->body(loop->context, static_cast<uint32_t>(piece), count / pieces * piece + std::min(piece, count % pieces),
                 count / pieces * (piece + 1) + std::min(piece + 1, count % pieces));
      inside = outer;
    };
    std::vector<std::jthread> threads;
    for (uint64_t piece = 1; piece < pieces; ++piece) threads.emplace_back(run, piece);
    run(0);
  }
  static uint32_t thread_count(const bp_host_t* host) { return self(host).threads_; }

  static bp_status_t topology(const bp_host_t*, bp_topology_t* out_topology) {
    if (out_topology == nullptr) return BP_INVALID_ARGUMENT;
    static const std::vector<bp_core_t> kCores = [] {
      std::vector<bp_core_t> result(std::max(1u, std::thread::hardware_concurrency()));
      for (uint32_t i = 0; i < result.size(); ++i) result[i] = {.id = i, .core = i, .flags = BP_CORE_ALLOWED};
      return result;
    }();
    const bp_topology_t topology = {
        .size = sizeof topology,
        .core_count = static_cast<uint32_t>(kCores.size()),
        .cores = kCores.data(),
        .core_stride = sizeof(bp_core_t),
        .numa_count = 1,
        .memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)),
        .cache_line_bytes = 64};
    write_back(topology, out_topology);
    return BP_OK;
  }

  static bp_status_t option(const bp_host_t*, bp_text_t, bp_text_t*) { return BP_NOT_FOUND; }
  static uint32_t cancelled(const bp_host_t*, const bp_cancel_t* token) { return token != nullptr && token->set; }

  static bp_status_t semaphore_wait(const bp_host_t*, bp_semaphore_t* semaphore, uint64_t value, uint64_t deadline,
                                    const bp_cancel_t* cancel, bp_error_t*) {
    return semaphore == nullptr ? BP_INVALID_ARGUMENT : semaphore->wait(value, deadline, cancel);
  }
  static void semaphore_signal(const bp_host_t*, bp_semaphore_t* semaphore, uint64_t value, const bp_error_t* failure) {
    if (semaphore != nullptr) semaphore->signal(value, failure != nullptr);
  }
  static bp_status_t semaphore_query(const bp_host_t*, bp_semaphore_t* semaphore, uint64_t* out_value, bp_error_t*) {
    return semaphore == nullptr || out_value == nullptr ? BP_INVALID_ARGUMENT : semaphore->query(out_value);
  }

  static bp_status_t submit(const bp_host_t* host, const bp_task_t* task) {
    if (task == nullptr || task->run == nullptr) return BP_INVALID_ARGUMENT;
    Host& h = self(host);
    {
      const std::lock_guard lock(h.mutex_);
      ++h.tasks_;
    }
    std::thread([&h, run = task->run, of = task->self] {
      run(of);
      const std::lock_guard lock(h.mutex_);
      --h.tasks_;
      h.changed_.notify_all();
    }).detach();
    return BP_OK;
  }
  static bp_status_t on_cancel(const bp_host_t*, const bp_cancel_t* token, const bp_on_cancel_t* what,
                               bp_cancel_link_t** out_link) {
    if (token == nullptr || what == nullptr || out_link == nullptr) return BP_INVALID_ARGUMENT;
    *out_link = new bp_cancel_link_t(*token, *what);
    return BP_OK;
  }
  static void off_cancel(const bp_host_t*, bp_cancel_link_t* link) { delete link; }
  static bp_status_t option_at(const bp_host_t*, uint32_t, bp_option_t*) { return BP_NOT_FOUND; }
  static const void* get_extension(const bp_host_t* host, bp_text_t name, uint32_t version) {
    if (name.data != nullptr && name.size != 0 && version != 0) return nullptr;
    const std::lock_guard lock(self(host).mutex_);
    self(host).misuse_ = "requested an extension without a name or a version";
    return nullptr;
  }
};

Host::Host(uint32_t version, uint32_t threads) : threads_(threads) {
  table_ = {.size = sizeof table_,
            .version = version,
            .self = this,
            .log = Slots::log,
            .tracing = Slots::tracing,
            .trace = Slots::trace,
            .allocate = Slots::allocate,
            .release = Slots::release,
            .parallel_for = Slots::parallel_for,
            .thread_count = Slots::thread_count,
            .topology = Slots::topology,
            .option = Slots::option,
            .cancelled = Slots::cancelled,
            .semaphore_wait = Slots::semaphore_wait,
            .semaphore_signal = Slots::semaphore_signal,
            .semaphore_query = Slots::semaphore_query,
            .containers = container_api(),
            .get_extension = Slots::get_extension,
            .submit = Slots::submit,
            .on_cancel = Slots::on_cancel,
            .off_cancel = Slots::off_cancel,
            .option_at = Slots::option_at};
}

void Host::remove_optional_slots() {
  table_.log = nullptr;
  table_.tracing = nullptr;
  table_.trace = nullptr;
  table_.allocate = nullptr;
  table_.release = nullptr;
  table_.parallel_for = nullptr;
  table_.containers = nullptr;
  table_.get_extension = nullptr;
  table_.submit = nullptr;
  table_.on_cancel = nullptr;
  table_.off_cancel = nullptr;
  table_.option_at = nullptr;
}

void Host::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_ == 0; });
}

void Host::fail_after(uint64_t successes) {
  left_ = successes;
}

uint64_t Host::live_bytes() {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [memory, block] : blocks_) bytes += block.bytes;
  return bytes;
}

std::vector<Span> Host::spans() {
  const std::lock_guard lock(mutex_);
  return spans_;
}

std::string Host::misuse() {
  const std::lock_guard lock(mutex_);
  return misuse_;
}

}  // namespace backplane::conform

bp_cancel_link_t::bp_cancel_link_t(const bp_cancel_t& token, const bp_on_cancel_t& what)
    : watcher([&token, cancelled = what.cancelled, self = what.self](const std::stop_token& unlinked) {
        while (!unlinked.stop_requested()) {
          if (token.set) return cancelled(self);
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      }) {}

bp_status_t bp_semaphore_t::wait(uint64_t value, uint64_t deadline, const bp_cancel_t* cancel) {
  std::unique_lock lock(mutex_);
  while (value_ < value) {
    if (cancel != nullptr && cancel->set) return BP_CANCELLED;
    if (backplane::conform::now_ns() >= deadline) return BP_TIMED_OUT;
    changed_.wait_for(lock, std::chrono::milliseconds(1));
  }
  return failed(value) ? BP_DEPENDENCY_FAILED : BP_OK;
}

void bp_semaphore_t::signal(uint64_t value, bool failed) {
  const std::lock_guard lock(mutex_);
  if (failed && value > value_) failures_.emplace_back(value_, value);
  value_ = std::max(value_, value);
  changed_.notify_all();
}

bp_status_t bp_semaphore_t::query(uint64_t* out_value) {
  const std::lock_guard lock(mutex_);
  *out_value = value_;
  return failed(value_) ? BP_DEPENDENCY_FAILED : BP_OK;
}

bool bp_semaphore_t::failed(uint64_t value) const {
  return std::ranges::any_of(failures_,
                             [&](const auto& range) { return range.first < value && value <= range.second; });
}

// SPDX-License-Identifier: Apache-2.0
// The host's functions and settings in C++. Where the host leaves a slot NULL, a simple implementation replaces it, or
// the call has no effect; only waiting for a semaphore then fails.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>

#include "backplane/graph.hpp"
#include "backplane/sdk/fence.hpp"

namespace backplane::sdk {

using view::text;

class Host {
 public:
  // `host` must stay valid until the backend is destroyed.
  explicit Host(const bp_host_t* host) : host_(host), slots_(read(host, "host")) {
    if (slots_.containers != nullptr) containers_ = read(slots_.containers, "host.containers");
  }

  // The host's own table, which may be shorter than this build's bp_host_t: check BP_HAS before fields that ABI 1.0
  // lacks.
  const bp_host_t* raw() const { return host_; }

  // `level` is BP_LOG_*.
  void log(uint32_t level, std::string_view line) const {
    if (slots_.log != nullptr) slots_.log(host_, level, text(line));
  }
  bool tracing() const { return slots_.tracing != nullptr && slots_.tracing(host_) != 0; }
  void trace(bp_span_t span) const {
    span.size = sizeof span;
    if (slots_.trace != nullptr) slots_.trace(host_, &span);
  }

  // Allocates host memory. Throws std::bad_alloc. Call `release` with the same size and alignment.
  void* allocate(uint64_t bytes, uint64_t alignment) const {
    void* memory = slots_.allocate != nullptr ? slots_.allocate(host_, bytes, alignment)
                                              : std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  void release(void* memory, uint64_t bytes, uint64_t alignment) const noexcept {
    if (slots_.allocate == nullptr) return std::free(memory);
    slots_.release(host_, memory, bytes, alignment);
  }

  // Calls body(begin, end), or body(worker, begin, end), over [0, count) in chunks of at least `grain`. Concurrent
  // chunks of this loop have different values of `worker`, which is below `thread_count`; other loops may use the same
  // values at the same time. If a body throws, the host still runs the other chunks; then rethrows the first exception.
  template <class Body>
  void parallel_for(uint64_t count, uint64_t grain, Body&& body) const {
    if (count == 0) return;
    struct Loop {
      Body& body;
      std::atomic<bool> failed{false};
      std::exception_ptr failure;
      void piece(uint32_t worker, uint64_t begin, uint64_t end) {
        if constexpr (std::is_invocable_v<Body&, uint32_t, uint64_t, uint64_t>)
          body(worker, begin, end);
        else
          body(begin, end);
      }
    } loop{body, {}, {}};
    if (slots_.parallel_for == nullptr) return loop.piece(0, 0, count);
    const auto piece = [](void* context, uint32_t worker, uint64_t begin, uint64_t end) noexcept {
      Loop& loop = *static_cast<Loop*>(context);
      try {
        loop.piece(worker, begin, end);
      } catch (...) {
        if (!loop.failed.exchange(true)) loop.failure = std::current_exception();
      }
    };
    const bp_loop_t what{sizeof what, 0, count, grain, &loop, piece};
    slots_.parallel_for(host_, &what);
    if (loop.failure) std::rethrow_exception(loop.failure);
  }
  // Runs `task`, which must not throw, on a thread of the host, or on a new thread if the host offers none. Throws
  // if the task will not run: Error (BP_RESOURCE_EXHAUSTED), or std::system_error, which `fence` maps to the same
  // status. The backend must outlive the task; a host that offers threads ensures that.
  template <class Task>
  void submit(Task&& task) const {
    auto held = std::make_unique<std::decay_t<Task>>(std::forward<Task>(task));
    const auto run = [](void* self) noexcept {
      (*std::unique_ptr<std::decay_t<Task>>(static_cast<std::decay_t<Task>*>(self)))();
    };
    if (slots_.submit == nullptr) {
      std::thread(run, held.get()).detach();
    } else {
      const bp_task_t what{sizeof what, 0, held.get(), run};
      if (const bp_status_t status = slots_.submit(host_, &what); status != BP_OK)
        throw Error(status, "the host has no thread for a task");
    }
    static_cast<void>(held.release());  // now owned by the task
  }
  uint32_t thread_count() const { return slots_.thread_count != nullptr ? slots_.thread_count(host_) : 1; }
  // The machine's topology; nullopt if the host does not know it. Read core `i` with element(cores, i, core_stride).
  std::optional<bp_topology_t> topology() const {
    bp_topology_t topology{};
    topology.size = sizeof topology;
    if (slots_.topology == nullptr || slots_.topology(host_, &topology) != BP_OK) return std::nullopt;
    return topology;
  }

  // Returns a setting of this plugin, or nullopt. The name has no prefix. The text is valid as long as the backend.
  std::optional<std::string_view> option(std::string_view name) const {
    bp_text_t value{};
    if (slots_.option == nullptr || slots_.option(host_, text(name), &value) != BP_OK) return std::nullopt;
    return text(value);
  }

  // Throws BP_NOT_FOUND if the plugin has a setting that is not in `known`. Passes if the host cannot list settings.
  template <class Names>
  void check_options(const Names& known) const {
    bp_option_t option{};
    for (uint32_t i = 0; slots_.option_at != nullptr && slots_.option_at(host_, i, &option) == BP_OK; ++i) {
      const std::string_view name = text(option.name);
      if (std::find(std::begin(known), std::end(known), name) != std::end(known)) continue;
      std::string all;
      for (const std::string_view one : known) all.append(all.empty() ? "" : ", ").append(one);
      throw Error(BP_NOT_FOUND, "there is no option '" + std::string(name) + "'; " +
                                    (all.empty() ? "this backend has none" : "there are: " + all));
    }
  }

  // Throws Error if the run or compilation was cancelled or its deadline has passed. A deadline of 0 means none.
  void check(const bp_cancel_t* cancel, uint64_t deadline = 0) const {
    if (cancel != nullptr && slots_.cancelled != nullptr && slots_.cancelled(host_, cancel) != 0) {
      throw Error(BP_CANCELLED, "the cancel token was set");
    }
    if (deadline == 0) return;
    const auto now =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
    if (static_cast<uint64_t>(now.count()) >= deadline) throw Error(BP_TIMED_OUT, "the deadline passed");
  }

  // Waits for a host point of a run. `deadline` is the run's: 0 means none. Refuses native points, which belong to the
  // device.
  void wait(const bp_point_t& point, uint64_t deadline, const bp_cancel_t* cancel) const {
    bp_semaphore_t* const semaphore = bp_point_host(&point);
    if (semaphore == nullptr)
      throw Error(BP_UNSUPPORTED, "cannot wait for a native point on the host; use a host point");
    if (slots_.semaphore_wait == nullptr)
      throw Error(BP_UNSUPPORTED, "cannot wait for a host point: the host has no semaphore_wait");
    Detail detail;
    detail.check(slots_.semaphore_wait(host_, semaphore, point.value, deadline == 0 ? BP_FOREVER : deadline, cancel,
                                       detail.get()),
                 "waiting for a host point failed");
  }
  // Advances a host point; ignores native points. NULL `failure` means success.
  void signal(const bp_point_t& point, const bp_error_t* failure = nullptr) const noexcept {
    bp_semaphore_t* const semaphore = bp_point_host(&point);
    if (slots_.semaphore_signal != nullptr && semaphore != nullptr)
      slots_.semaphore_signal(host_, semaphore, point.value, failure);
  }

  // While this object lives, the host calls `wake` at most once, on one of its threads, soon after the token is set.
  // `wake` must not throw, block or destroy this object.
  class OnCancel {
   public:
    OnCancel(const Host& host, const bp_cancel_t* token, std::function<void()> wake)
        : host_(host), wake_(std::move(wake)) {
      if (token == nullptr || host_.slots_.on_cancel == nullptr) return;
      const bp_on_cancel_t what{sizeof what, 0, this, [](void* self) { static_cast<OnCancel*>(self)->wake_(); }};
      if (host_.slots_.on_cancel(host_.host_, token, &what, &link_) != BP_OK) link_ = nullptr;
    }
    OnCancel(const OnCancel&) = delete;
    OnCancel& operator=(const OnCancel&) = delete;
    ~OnCancel() {
      if (link_ != nullptr) host_.slots_.off_cancel(host_.host_, link_);
    }
    // Whether the host will call `wake` if the token is set. If not, poll the token.
    bool is_called() const { return link_ != nullptr; }

   private:
    const Host& host_;
    const std::function<void()> wake_;
    bp_cancel_link_t* link_ = nullptr;
  };

  // NULL if the host has no containers. Valid as long as this object.
  const bp_container_api_t* containers() const { return slots_.containers != nullptr ? &containers_ : nullptr; }
  const void* extension(std::string_view name, uint32_t version) const {
    return slots_.get_extension != nullptr ? slots_.get_extension(host_, text(name), version) : nullptr;
  }

 private:
  const bp_host_t* host_;
  bp_host_t slots_;
  bp_container_api_t containers_{};
};

// Settings that are passed with a call.
class Options {
 public:
  Options() = default;
  Options(const bp_option_t* first, uint32_t count, uint32_t stride) : first_(first), count_(count), stride_(stride) {
    check_array(first, count, stride, "options");
  }

  std::optional<std::string_view> get(std::string_view name) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (text(at(i).name) == name) return text(at(i).value);
    }
    return std::nullopt;
  }
  // Throws BP_NOT_FOUND if a setting is not in `names`.
  void allow(std::initializer_list<std::string_view> names) const {
    for (uint32_t i = 0; i < count_; ++i) {
      const std::string_view name = text(at(i).name);
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      std::string known;
      for (const std::string_view n : names) known.append(known.empty() ? "" : ", ").append(n);
      throw Error(BP_NOT_FOUND,
                  "no setting is named '" + std::string(name) + "'; known: " + (known.empty() ? "none" : known));
    }
  }

 private:
  const bp_option_t& at(uint32_t i) const {
    return *reinterpret_cast<const bp_option_t*>(reinterpret_cast<const char*>(first_) + uint64_t{i} * stride_);
  }
  const bp_option_t* first_ = nullptr;
  uint32_t count_ = 0;
  uint32_t stride_ = 0;
};

}  // namespace backplane::sdk

// SPDX-License-Identifier: Apache-2.0
// Helpers for asynchronous runs, by the rules of plugin.h and sync.h: waiting for points, reporting the end of a run,
// and a stream and a timeline for devices whose driver has none.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "backplane/sdk/backend.hpp"

namespace backplane::sdk {

inline uint64_t monotonic_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

// Waits until `is_true()` returns true. Returns false if the deadline passed first. `deadline` is in ns on the
// monotonic clock; BP_FOREVER means no deadline.
template <class Predicate>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, uint64_t deadline,
                const Predicate& is_true) {
  if (deadline > static_cast<uint64_t>(INT64_MAX)) {
    changed.wait(lock, is_true);
    return true;
  }
  const std::chrono::steady_clock::time_point end{std::chrono::nanoseconds(deadline)};
  return changed.wait_until(lock, end, is_true);
}

// Copies of the waits and signals of a run or a memory copy. Must live until the end of the run has been reported.
class RunSync {
 public:
  RunSync() = default;
  RunSync(const Host& host, const bp_run_t& run) { assign(host, run); }
  // Replaces the run. The vectors keep their memory.
  void assign(const Host& host, const bp_run_t& run) {
    host_ = &host;
    run_ = run;
    waits_.assign(run.waits, run.waits + run.wait_count);
    signals_.assign(run.signals, run.signals + run.signal_count);
    run_.waits = waits_.data();
    run_.signals = signals_.data();
  }
  RunSync(const RunSync&) = delete;  // `run_` points into the vectors, so a copy would point into the original
  RunSync& operator=(const RunSync&) = delete;
  RunSync(RunSync&&) = default;
  RunSync& operator=(RunSync&&) = default;

  const bp_run_t& run() const { return run_; }
  const std::vector<bp_point_t>& waits() const { return waits_; }
  const std::vector<bp_point_t>& signals() const { return signals_; }

  // Whether `wait` would block. If the host has no `semaphore_query`, assumes that host points block.
  bool must_wait() const {
    const bp_host_t* host = host_->raw();
    return std::any_of(waits_.begin(), waits_.end(), [&](const bp_point_t& point) {
      if (NativeSemaphore* native = semaphore_of(bp_point_native(&point))) return !native->wait(point.value, 0);
      uint64_t value = 0;
      bp_semaphore_t* const semaphore = bp_point_host(&point);
      if (semaphore == nullptr) return false;  // `wait` refuses it
      if (host->semaphore_query == nullptr) return true;
      static_cast<void>(host->semaphore_query(host, semaphore, &value, nullptr));
      return value < point.value;
    });
  }
  // Waits until all points are reached. Throws if a host point failed, if the deadline passes, and on cancellation.
  void wait() const {
    for (const bp_point_t& point : waits_) {
      if (NativeSemaphore* native = semaphore_of(bp_point_native(&point)))
        wait(*native, point.value);
      else
        host_->wait(point, run_.deadline, run_.cancel);
    }
    host_->check(run_.cancel, run_.deadline);
  }
  // If this run waited for a native point of a failed run, returns that run's failure. Otherwise nullopt.
  std::optional<Error> dependency() const {
    for (const bp_point_t& point : waits_) {
      NativeSemaphore* const native = semaphore_of(bp_point_native(&point));
      if (native == nullptr) continue;
      if (std::optional<Error> failure = native->failure(point.value)) {
        failure->status = BP_DEPENDENCY_FAILED;
        return failure;
      }
    }
    return std::nullopt;
  }
  // Reports the end of the run: calls `done`, then advances the signals. `failure` is NULL after a success.
  void end(const Error* failure) const noexcept {
    bp_error_t error{};
    error.size = sizeof error;
    if (failure != nullptr) {
      error.text = const_cast<char*>(failure->text.data());  // receivers only read it
      error.text_capacity = failure->text.size();
      error.status = failure->status;
      error.node = failure->node;
      error.vendor_code = failure->vendor_code;
      error.flags = failure->flags;
      error.text_size = failure->text.size();
      error.run = failure->run;
    }
    const bp_error_t* const detail = failure != nullptr ? &error : nullptr;
    if (run_.done != nullptr) run_.done(run_.self, failure != nullptr ? failure->status : BP_OK, detail);
    for (const bp_point_t& point : signals_) {
      if (NativeSemaphore* native = semaphore_of(bp_point_native(&point)))
        static_cast<void>(caught([&] { native->signal(point.value, failure); }));
      else
        host_->signal(point, detail);
    }
  }

 private:
  void wait(NativeSemaphore& native, uint64_t value) const {
    constexpr uint64_t kCancelSliceNs = 2'000'000;  // interval of polling the token, for waits that `wake` does not end
    const uint64_t deadline = run_.deadline != 0 ? run_.deadline : BP_FOREVER;
    host_->check(run_.cancel, run_.deadline);
    if (native.wait(value, 0)) return;
    std::atomic<bool> stop{false};
    const Host::OnCancel link(*host_, native.wakes() ? run_.cancel : nullptr, [&] {
      stop = true;
      native.wake();
    });
    const bool polls = run_.cancel != nullptr && !link.is_called();
    do {
      host_->check(run_.cancel, run_.deadline);
    } while (!native.wait(value, polls ? std::min(deadline, monotonic_now() + kCancelSliceNs) : deadline, stop));
  }

  const Host* host_ = nullptr;
  bp_run_t run_{};
  std::vector<bp_point_t> waits_, signals_;
};

// Stores the first failure in a stream that has not been reported yet, because its run had no `done`. Thread-safe.
class Unreported {
 public:
  // Returns false if a failure is stored already: later failures usually follow from the first.
  bool add(Error failure, uint64_t run) {
    const std::lock_guard lock(mutex_);
    if (failure_) return false;
    failure_ = std::move(failure);
    failure_->run = run;
    failure_->flags |= BP_ERROR_OF_RUN;
    return true;
  }
  std::optional<Error> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(failure_, std::nullopt);
  }
  // Returns the failure, which still counts as not reported.
  std::optional<Error> get() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> failure_;
};

// Reports the end of a run that a stream executed. If an earlier run in the stream has an unreported failure, that
// failure replaces this run's own. A run with `done` reports it. A run without `done` only passes it on to its signals,
// so it stays unreported.
inline void end_in_stream(const RunSync& sync, Unreported& unreported, std::optional<Error> failure) noexcept {
  const bp_run_t& run = sync.run();
  if (!failure) failure = sync.dependency();
  if (run.stream == nullptr)
    return sync.end(failure ? &*failure : nullptr);  // the instance's own stream: no later run reports the failure
  const bool is_first = run.done == nullptr && failure && unreported.add(std::move(*failure), run.id);
  if (std::optional<Error> before = run.done != nullptr ? unreported.take() : unreported.get())
    failure = std::move(before);
  if (failure && (is_first || (run.id != 0 && failure->run == run.id))) {  // the failure is this run's own
    failure->run = 0;
    failure->flags &= ~BP_ERROR_OF_RUN;
  }
  sync.end(failure ? &*failure : nullptr);
}

// A timeline semaphore on the host, for devices whose driver has none.
class HostTimeline : public NativeSemaphore {
 public:
  explicit HostTimeline(uint64_t value = 0) : value_(value) { failures_.reserve(kKept); }

  bool wait(uint64_t value, uint64_t deadline) override {
    std::unique_lock lock(mutex_);
    return wait_until(changed_, lock, deadline, [&] { return value_ >= value; });
  }
  bool wait(uint64_t value, uint64_t deadline, const std::atomic<bool>& stop) override {
    std::unique_lock lock(mutex_);
    wait_until(changed_, lock, deadline, [&] { return value_ >= value || stop; });
    return value_ >= value;
  }
  bool wakes() const override { return true; }
  void wake() override {
    const std::lock_guard lock(mutex_);  // ensures that a waiter that saw `stop` unset is blocked by now
    changed_.notify_all();
  }
  void signal(uint64_t value, const Error* failure) override {
    const std::lock_guard lock(mutex_);
    const uint64_t before = value_;
    value_ = std::max(value_, value);
    changed_.notify_all();
    if (failure == nullptr || value <= before) return;
    if (failures_.size() == kKept) merge_two();
    failures_.push_back({before + 1, value, *failure});
  }
  uint64_t value() override {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  std::optional<Error> failure(uint64_t value) override {
    const std::lock_guard lock(mutex_);
    for (const Failure& failure : failures_)
      if (failure.first <= value && value <= failure.last) return failure.cause;
    return std::nullopt;
  }

 private:
  struct Failure {
    uint64_t first, last;  // the values that this failure covers
    Error cause;
  };
  static constexpr size_t kKept = 16;

  // Merges two failures without a value between them, or else the two oldest. The result also covers the values
  // between.
  void merge_two() {
    const auto found =
        std::adjacent_find(failures_.begin(), failures_.end(),
                           [](const Failure& one, const Failure& next) { return next.first == one.last + 1; });
    const auto one = found != failures_.end() ? found : failures_.begin();
    (one + 1)->first = one->first;
    failures_.erase(one);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_;
  std::vector<Failure> failures_;  // has room for kKept, because `signal` must not need memory
};

// One run's work in a stream: a small function object that is stored without allocation and called with the run's
// RunSync.
class Work {
 public:
  Work() = default;
  template <class Body>
  Work(Body body) {  // NOLINT(google-explicit-constructor): as std::function
    static_assert(sizeof body <= sizeof words_ && alignof(Body) <= alignof(void*), "capture less, or a pointer to it");
    static_assert(std::is_trivially_copyable_v<Body>, "capture pointers and numbers");
    std::memcpy(words_, &body, sizeof body);
    call_ = [](void* words, const RunSync& sync) { (*static_cast<Body*>(words))(sync); };
  }
  void operator()(const RunSync& sync) { call_(words_, sync); }

 private:
  void (*call_)(void* words, const RunSync& sync) = nullptr;
  void* words_[6];
};

// A stream for devices whose driver does a run in one blocking call. A thread makes these calls in order.
class HostStream : public Stream {
 public:
  HostStream() : state_(std::make_shared<State>()), thread_([state = state_] { state->loop(); }) {}
  // Waits until all submitted work has ended.
  ~HostStream() override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->stop = true;
    }
    state_->changed.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  // Queues `work`. The thread calls queued work in order, and reports the end of each run. `work` must call
  // RunSync::wait first.
  void submit(const Host& host, const bp_run_t& run, Work work) {
    {
      const std::lock_guard lock(state_->mutex);
      std::list<Piece>& spare = state_->spare;
      if (spare.empty()) spare.emplace_back();
      spare.front().sync.assign(host, run);
      spare.front().work = work;
      state_->pieces.splice(state_->pieces.end(), spare, spare.begin());
    }
    state_->changed.notify_all();
  }
  void wait(uint64_t deadline) override {
    std::unique_lock lock(state_->mutex);
    if (!wait_until(state_->changed, lock, deadline, [&] { return state_->pieces.empty() && !state_->busy; }))
      throw Error(BP_TIMED_OUT, "the deadline passed before the work of the stream ended");
    if (const std::optional<Error> failure = state_->unreported.take()) throw Error(*failure);
  }
  // Detaches the thread, which is stuck in a call of the driver.
  void abandon() noexcept {
    if (thread_.joinable()) thread_.detach();
  }

 private:
  struct Piece {
    RunSync sync;
    Work work;
  };
  struct State {
    void loop() {
      std::unique_lock lock(mutex);
      for (;;) {
        changed.wait(lock, [&] { return stop || !pieces.empty(); });
        if (pieces.empty()) return;
        Piece& piece = pieces.front();
        busy = true;
        lock.unlock();
        std::optional<Error> failure = caught([&] { piece.work(piece.sync); });
        lock.lock();
        std::swap(ended, piece.sync);
        // Frees the piece for reuse first, because the next run may follow as soon as `done` is called.
        spare.splice(spare.end(), pieces, pieces.begin());
        lock.unlock();
        end_in_stream(ended, unreported, std::move(failure));
        lock.lock();
        busy = false;
        changed.notify_all();
      }
    }

    std::mutex mutex;
    std::condition_variable changed;
    std::list<Piece> pieces, spare;
    RunSync ended;
    Unreported unreported;
    bool busy = false, stop = false;
  };

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace backplane::sdk

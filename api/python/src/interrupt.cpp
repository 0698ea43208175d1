// SPDX-License-Identifier: Apache-2.0
#include "interrupt.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>

namespace backplane::python {
namespace {

constexpr auto kSignalPeriod = std::chrono::milliseconds(50);  // between two checks for signals

uint64_t next_look() {
  return deadline_at(std::chrono::steady_clock::now() + kSignalPeriod);
}

}  // namespace

uint64_t deadline_at(std::chrono::steady_clock::time_point time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

bool is_main_thread() {
  return gettid() == getpid();
}

bool is_set(const Cancel* token) {
  if (token == nullptr) return false;
  const Semaphore never;
  constexpr uint64_t kPast = 1;  // a deadline that has passed
  return api().semaphore_wait(never.get(), 1, kPast, token->get(), nullptr) == BP_CANCELLED;
}

void wait_with_signals(const Semaphore& over, const Cancel& cancel, const Cancel* watched,
                       std::optional<nb::python_error>& thrown) {
  for (;;) {
    const bp_cancel_t* const token = watched == nullptr ? nullptr : watched->get();
    const bp_status_t status = api().semaphore_wait(over.get(), 1, next_look(), token, nullptr);
    if (status == BP_CANCELLED) {
      watched = nullptr;
      cancel.set();
    } else if (status == BP_FORKED) {  // a handler forked, and this is the child
      throw Error(status,
                  "the handler of a signal forked the process during the call: create an environment in the child");
    } else if (status != BP_TIMED_OUT) {
      return;
    } else if (!thrown) {
      const LockedScope locked;
      if (PyErr_CheckSignals() == 0) continue;
      thrown.emplace();
      cancel.set();
    }
  }
}

void with_signals(const Cancel* watched, const std::function<void(const Cancel*)>& work) {
  const bool is_main = is_main_thread();
  std::optional<nb::python_error> thrown;
  try {
    const UnlockedScope unlocked;
    if (!is_main) {
      work(watched);
      return;
    }
    const Cancel cancel;  // not the caller's token, which ends other work too
    const Semaphore over;
    if (is_set(watched)) cancel.set();
    std::exception_ptr failure;
    std::unique_ptr<std::thread> worker;
    try {
      worker = std::make_unique<std::thread>([&] {
        try {
          work(&cancel);
        } catch (...) {
          failure = std::current_exception();
        }
        over.signal(1);
      });
    } catch (const std::system_error&) {  // no thread can be started
      work(watched);
      return;
    }
    try {
      wait_with_signals(over, cancel, watched, thrown);
    } catch (...) {
      (void)worker.release();  // a forked child does not have this thread
      throw;
    }
    worker->join();
    if (failure) std::rethrow_exception(failure);
  } catch (const Error& error) {
    if (!thrown || error.abandoned()) throw;
  }
  if (thrown) throw nb::python_error(std::move(*thrown));
}

void wait_in_parts(uint64_t end, const std::function<void(uint64_t deadline)>& wait) {
  const bool is_main = is_main_thread();
  for (;;) {
    const uint64_t deadline = is_main ? std::min(end, next_look()) : end;
    try {
      const UnlockedScope unlocked;
      wait(deadline);
      return;
    } catch (const Error& error) {
      if (error.status() != BP_TIMED_OUT || error.of_run() || deadline == end) throw;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

}  // namespace backplane::python

// SPDX-License-Identifier: Apache-2.0
// Signals during long calls. Python calls a signal's handler on its main thread only, between two steps of the
// interpreter, so a call that takes long must check for signals itself.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "core.h"

namespace backplane::python {

// A deadline of the ABI.
uint64_t deadline_at(std::chrono::steady_clock::time_point time);

// Whether the calling thread is the process's first, or the one that forked it. That is the interpreter's main thread,
// unless a program started the interpreter on another thread; then no call checks for signals.
bool is_main_thread();

// Whether the token, which may be null, is set already.
bool is_set(const Cancel* token);

// Waits until `over` reaches 1, and calls the handlers of signals meanwhile. When a handler throws, or `watched` (which
// may be null) is set, sets `cancel` and waits on. `thrown` receives the handler's exception. Throws Error in a child
// that a handler forked. Called without the interpreter lock.
void wait_with_signals(const Semaphore& over, const Cancel& cancel, const Cancel* watched,
                       std::optional<nb::python_error>& thrown);

// Calls `work` with a cancel token, and returns when `work` has ended. The token is set when `watched`, which may be
// null, is set, and on the main thread also when the handler of a signal throws: `with_signals` throws that exception
// once `work` has ended. On the main thread, `work` runs on another thread. The caller holds the interpreter lock;
// `work` is called without it.
void with_signals(const Cancel* watched, const std::function<void(const Cancel*)>& work);

// Calls `wait` with the deadline `end`. On the main thread, calls it repeatedly with earlier deadlines, up to `end`,
// and calls the handlers of signals in between. Throws the exception of a handler, or that of `wait` (but not the
// time-out of an earlier deadline). The caller holds the interpreter lock; `wait` is called without it.
void wait_in_parts(uint64_t end, const std::function<void(uint64_t deadline)>& wait);

}  // namespace backplane::python

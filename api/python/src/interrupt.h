// SPDX-License-Identifier: Apache-2.0
// Signals during long calls. Python calls a signal's handler on its main thread only, between two steps of the
// interpreter, so a call that takes long must look for signals itself.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "core.h"

namespace backplane::python {

// A deadline of the ABI.
uint64_t deadline_at(std::chrono::steady_clock::time_point time);

// Whether the calling thread is the process's first, or the one that forked it. That is the interpreter's main thread,
// unless a program started the interpreter on another thread; then no call looks for signals.
bool is_main_thread();

// Whether the token, which may be null, is set already.
bool is_set(const Cancel* token);

// Waits until `over` reaches 1, and calls the handlers of signals meanwhile. When a handler throws, or `watched` (which
// may be null) is set, sets `cancel` and waits on. `thrown` receives the handler's exception. Throws Error in a child
// that a handler forked. Called without the interpreter lock.
void wait_with_signals(const Semaphore& over, const Cancel& cancel, const Cancel* watched,
                       std::optional<nb::python_error>& thrown);

// Calls `work` with the token that ends it. `watched`, which may be null, ends it too. On the main thread, the
// exception of a signal's handler ends it and is thrown once it has ended; for that, `work` is called on another
// thread. Called with the interpreter lock held, `work` without it.
void with_signals(const Cancel* watched, const std::function<void(const Cancel*)>& work);

// Calls `wait` with a deadline, on the main thread with early ones and again after each time-out that is not `end`, and
// calls the handlers of signals in between. What a handler throws is thrown. Called with the interpreter lock held,
// `wait` without it.
void wait_in_parts(uint64_t end, const std::function<void(uint64_t deadline)>& wait);

}  // namespace backplane::python

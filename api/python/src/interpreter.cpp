// SPDX-License-Identifier: Apache-2.0
#include "interpreter.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace backplane::python {
namespace {

namespace nb = nanobind;

using Clock = std::chrono::steady_clock;

// How long the shutdown waits for Python code that other threads execute below C++ frames, and how long such threads
// then wait for its next phase.
constexpr auto kPatience = std::chrono::seconds(3);
constexpr auto kPeriod = std::chrono::milliseconds(1);

// From when a shutdown is announced until this time, threads other than `ending_thread` wait where they take the lock
// or call the module. 0: no shutdown was announced.
std::atomic<Clock::rep> ending_until = 0;
std::atomic<pthread_t> ending_thread;
int threads_inside = 0;  // threads with a depth above 0; guarded by the interpreter lock
thread_local int depth = 0;

bool must_wait() {
  const Clock::rep until = ending_until;
  return until != 0 && pthread_equal(ending_thread, pthread_self()) == 0 &&
         Clock::now().time_since_epoch().count() < until;
}

void announce() {
  ending_thread = pthread_self();
  ending_until = (Clock::now() + kPatience).time_since_epoch().count();
}

// Stops the calling thread for ever.
[[noreturn]] void stop_thread() {
  for (;;) pause();
}

// Takes the lock again.
void restore(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {  // Python's way of ending the thread
    stop_thread();
  }
}

// Lets the shutdown on another thread reach the phase in which Python ends threads that take the lock, so that this one
// is stopped here. It does not wait for ever, because a function that was registered with `atexit` earlier may wait for
// this thread.
void wait_for_the_end() {
  while (must_wait()) {
    PyThreadState* const state = PyEval_SaveThread();
    while (nb::is_alive() && must_wait()) std::this_thread::sleep_for(kPeriod);
    if (!nb::is_alive()) stop_thread();
    restore(state);
  }
}

void set_depth(int value) {
  if (depth > 0 && value == 0) --threads_inside;
  if (depth == 0 && value > 0) ++threads_inside;
  depth = value;
}

int leave() {
  const int left = depth;
  set_depth(0);
  return left;
}

PyGILState_STATE take_lock() {
  try {
    return PyGILState_Ensure();
  } catch (...) {  // Python's way of ending the thread
    stop_thread();
  }
}

// Runs before the interpreter shuts down.
void wait_for_calls() {
  announce();
  const auto end = Clock::now() + kPatience;
  while (threads_inside > (depth > 0 ? 1 : 0) && Clock::now() < end) {
    {
      const UnlockedScope unlocked;
      std::this_thread::sleep_for(kPeriod);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  announce();  // for the functions that run after this one
}

}  // namespace

void add_exit() {
  constexpr int64_t kStopsThreads = 0x030e0000;  // the first version that stops threads instead of unwinding them
  if (nb::cast<int64_t>(nb::module_::import_("sys").attr("hexversion")) >= kStopsThreads) return;
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&wait_for_calls));
  pthread_atfork(nullptr, nullptr, [] {  // the child has no other thread
    threads_inside = depth > 0 ? 1 : 0;
    ending_until = 0;
  });
}

bool can_call_python() {
  return nb::is_alive() && !must_wait();
}

Call::Call() {
  if (depth == 0) wait_for_the_end();
  set_depth(depth + 1);
}

Call::~Call() {
  set_depth(depth - 1);
}

UnlockedScope::UnlockedScope() : depth_(leave()), state_(PyEval_SaveThread()) {}

UnlockedScope::~UnlockedScope() {
  restore(state_);
  wait_for_the_end();
  set_depth(depth_);
}

LockedScope::LockedScope() : state_(take_lock()) {
  set_depth(depth + 1);
}

LockedScope::~LockedScope() {
  set_depth(depth - 1);
  PyGILState_Release(state_);
}

}  // namespace backplane::python

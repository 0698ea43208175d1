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

constexpr auto kPatience = std::chrono::seconds(3);  // with Python code that other threads execute below C++ frames
constexpr auto kPeriod = std::chrono::milliseconds(1);

std::atomic<bool> is_ending = false;
pthread_t ending_thread;  // valid if is_ending
int threads_inside = 0;   // threads with a depth above 0; guarded by the interpreter lock
thread_local int depth = 0;

bool must_stop() {
  return is_ending && pthread_equal(ending_thread, pthread_self()) == 0;
}

// Stops the calling thread for ever.
[[noreturn]] void stop_thread() {
  for (;;) pause();
}

// Stops the calling thread, which has the lock, if the interpreter is shutting down on another one.
void stop_at_the_end() {
  if (!must_stop()) return;
  (void)PyEval_SaveThread();
  stop_thread();
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

void stop_other_threads() {
  ending_thread = pthread_self();
  is_ending = true;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (threads_inside > 0 && std::chrono::steady_clock::now() < end) {
    const UnlockedScope unlocked;
    std::this_thread::sleep_for(kPeriod);
  }
}

}  // namespace

void add_exit() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&stop_other_threads));
  pthread_atfork(nullptr, nullptr, [] { threads_inside = depth > 0 ? 1 : 0; });  // the child has no other thread
}

bool can_call_python() {
  return nb::is_alive() && !must_stop();
}

Call::Call() {
  if (depth == 0) stop_at_the_end();
  set_depth(depth + 1);
}

Call::~Call() {
  set_depth(depth - 1);
}

UnlockedScope::UnlockedScope() : depth_(leave()), state_(PyEval_SaveThread()) {}

UnlockedScope::~UnlockedScope() {
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {
    stop_thread();
  }
  stop_at_the_end();
  set_depth(depth_);
}

LockedScope::LockedScope() : state_(take_lock()) {
  if (depth == 0) stop_at_the_end();
  set_depth(depth + 1);
}

LockedScope::~LockedScope() {
  set_depth(depth - 1);
  PyGILState_Release(state_);
}

}  // namespace backplane::python

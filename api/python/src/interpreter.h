// SPDX-License-Identifier: Apache-2.0
// The interpreter lock, and threads at the end of the interpreter.
//
// Before version 3.14, Python ends a daemon thread that takes the lock while the interpreter shuts down, and it does so
// by unwinding the thread's stack. Destructors of C++ frames on that stack would then release Python objects without
// the lock, which ends the process. So no such thread should have C++ frames of this module on its stack when the
// shutdown begins. add_exit registers a function that announces it: from then on, other threads wait for a few seconds
// where they take the lock or call the module, and the function waits as long until none executes Python code below a
// C++ frame.
#pragma once

#include <nanobind/nanobind.h>

namespace backplane::python {

// Registers that function with `atexit`, where Python unwinds threads.
void add_exit();

// Whether the calling thread may call Python: not after the interpreter has shut down, nor, once that is announced, on
// other threads than the one that shuts it down. May be called without the lock.
bool can_call_python();

// Counts the calling thread while it executes a function of the module. Nested objects count once.
class Call {
 public:
  Call();
  Call(Call&&) = delete;
  ~Call();
};

// Releases the lock for a scope.
class UnlockedScope {
 public:
  UnlockedScope();
  UnlockedScope(UnlockedScope&&) = delete;
  ~UnlockedScope();

 private:
  const int depth_;  // of the thread's Calls, which do not count while it waits here
  PyThreadState* const state_;
};

// Takes the lock for a scope, on any thread. Check can_call_python() before, and again in the scope: the shutdown may
// have been announced meanwhile.
class LockedScope {
 public:
  LockedScope();
  LockedScope(LockedScope&&) = delete;
  ~LockedScope();

 private:
  const PyGILState_STATE state_;
};

}  // namespace backplane::python

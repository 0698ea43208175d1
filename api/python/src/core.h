// SPDX-License-Identifier: Apache-2.0
// Shared by the sources of the module: nanobind, the C++ client, and one function for each file that adds classes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "backplane/client.hpp"

namespace backplane::python {

namespace nb = nanobind;

void add_errors(nb::module_& module);
void add_sync(nb::module_& module);
void add_array(nb::module_& module);
void add_environment(nb::module_& module);
void add_model(nb::module_& module);
void add_session(nb::module_& module);
void add_run(nb::module_& module);

// A value of the client whose destruction may wait: for a run, a device, a thread that logs. The interpreter lock is
// released meanwhile. Destroyed with the lock held, as nanobind does.
template <class T>
class Unlocked {
 public:
  explicit Unlocked(T value) : value_(std::move(value)) {}
  Unlocked(Unlocked&&) = delete;
  ~Unlocked() {
    nb::gil_scoped_release unlocked;
    value_.reset();
  }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
};

// A reference to a Python object that native code holds: it is dropped by whichever thread is the last to need it,
// which takes the interpreter lock for that. After the interpreter's end the object is left alone.
class SharedObject {
 public:
  explicit SharedObject(nb::object object) : object_(std::move(object)) {}
  SharedObject(SharedObject&&) = delete;
  ~SharedObject() {
    if (!nb::is_alive()) {
      object_.release();
      return;
    }
    nb::gil_scoped_acquire locked;
    object_.reset();
  }
  const nb::object& get() const { return object_; }

 private:
  nb::object object_;
};

// An attribute of a Python module of this package or of another one.
inline nb::object imported(const char* module, const char* name) {
  return nb::module_::import_(module).attr(name);
}

// Seconds of the caller as the monotonic clock's deadline, or 0 for none.
std::chrono::nanoseconds timeout_of(nb::handle seconds);

// A Python sequence of text, or one text, as strings.
std::vector<std::string> strings_of(nb::handle object, const char* what);
// A Python mapping with text as keys; numbers and booleans become text: True is "1".
std::map<std::string, std::string> options_of(nb::handle object, const char* what);

}  // namespace backplane::python

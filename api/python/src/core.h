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
#include <vector>

#include "backplane/client.hpp"
#include "interpreter.h"

namespace backplane::python {

namespace nb = nanobind;

void add_errors(nb::module_& module);
void add_sync(nb::module_& module);
void add_array(nb::module_& module);
void add_environment(nb::module_& module);
void add_model(nb::module_& module);
void add_session(nb::module_& module);
void add_run(nb::module_& module);

// A class of the module. Its functions and getters run within a Call.
template <class T>
class Class : public nb::class_<T> {
 public:
  using Base = nb::class_<T>;
  using Base::Base;
  template <class... Args>
  Class& def(Args&&... args) {
    Base::def(std::forward<Args>(args)..., nb::call_guard<Call>());
    return *this;
  }
  template <class... Args>
  Class& def_prop_ro(const Args&... args) {
    Base::def_prop_ro(args..., nb::call_guard<Call>());
    return *this;
  }
  template <class... Args>
  Class& def_ro(const Args&... args) {
    Base::def_ro(args..., nb::call_guard<Call>());
    return *this;
  }
};

// Holds a client object whose destruction may wait for a run, a device or a logging thread. Releases the interpreter
// lock during that wait. Must be destroyed with the lock held, as nanobind does.
template <class T>
class Unlocked {
 public:
  explicit Unlocked(T value) : value_(std::move(value)) {}
  Unlocked(Unlocked&&) = delete;
  ~Unlocked() {
    const UnlockedScope unlocked;
    value_.reset();
  }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
};

// Releases the interpreter lock for a call that may wait for a run. Other calls are too short to release it.
class Waiting {
 public:
  explicit Waiting(bool may_wait) {
    if (may_wait) unlocked_.emplace();
  }

 private:
  std::optional<UnlockedScope> unlocked_;
};

// A reference from native code to a Python object. The thread that destroys the reference takes the
// interpreter lock to do so. Where Python may not be called any more, the object is leaked.
class SharedObject {
 public:
  explicit SharedObject(nb::object object) : object_(std::move(object)) {}
  SharedObject(SharedObject&&) = delete;
  ~SharedObject() {
    if (can_call_python()) {
      const LockedScope locked;
      if (can_call_python()) object_.reset();
    }
    object_.release();
  }
  const nb::object& get() const { return object_; }
  void clear() { const nb::object released = std::move(object_); }

 private:
  nb::object object_;
};

// The functions that Python's garbage collector calls for objects that may refer to themselves. They call T::traverse
// and, if there is one, T::clear.
template <class T>
struct Collected {
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    return nb::inst_ready(self) ? nb::inst_ptr<T>(self)->traverse(visit, arg) : 0;
  }
  static int clear(PyObject* self) {
    if constexpr (requires(T & object) { object.clear(); }) {
      const Call inside;
      if (nb::inst_ready(self)) nb::inst_ptr<T>(self)->clear();
    }
    return 0;
  }
  static inline const PyType_Slot kSlots[] = {
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};
};

// Imports a Python module and returns one of its attributes.
inline nb::object imported(const char* module, const char* name) {
  return nb::module_::import_(module).attr(name);
}

}  // namespace backplane::python

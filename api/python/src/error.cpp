// SPDX-License-Identifier: Apache-2.0
// Converts errors of the client to the exceptions in backplane/errors.py.
#include "convert.h"
#include "core.h"

namespace backplane::python {
namespace {

void raise(const Error& error) {
  const Call inside;  // that of the function has ended
  const char* name = api().status_name == nullptr ? "" : api().status_name(error.status());
  nb::object node = error.node() == BP_NO_NODE ? nb::object(nb::none()) : nb::object(nb::int_(error.node()));
  nb::object exception = imported("backplane.errors", "make_error")(
      error.status(), name, text_of(error.text()), node, error.vendor_code(), error.device_lost(), error.abandoned());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

void translate(const std::exception_ptr& pointer, void* /*payload*/) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    try {
      raise(error);
    } catch (nb::python_error& failure) {
      failure.restore();
    }
  }
}

}  // namespace

void add_errors(nb::module_& /*module*/) {
  nb::register_exception_translator(translate);
}

}  // namespace backplane::python

// SPDX-License-Identifier: Apache-2.0
// Cancel tokens and streams, and conversions of settings that several classes share.
#include "sync.h"

namespace backplane::python {

std::chrono::nanoseconds timeout_of(nb::handle seconds) {
  if (seconds.is_none()) return std::chrono::nanoseconds(0);
  const auto value = nb::cast<double>(seconds);
  if (!(value > 0)) throw std::invalid_argument("timeout is " + std::to_string(value) + ": it must be above 0 seconds");
  constexpr double kCentury = 3e9;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::min(value, kCentury) * 1e9));
}

std::vector<std::string> strings_of(nb::handle object, const char* what) {
  if (object.is_none()) return {};
  if (nb::isinstance<nb::str>(object) || nb::hasattr(object, "__fspath__"))
    return {nb::cast<std::string>(nb::str(object))};
  std::vector<std::string> result;
  try {
    for (nb::handle element : object) result.push_back(nb::cast<std::string>(nb::str(element)));
  } catch (nb::python_error&) {
    const std::string text = std::string(what) + ": a str or a sequence of str is expected";
    throw nb::type_error(text.c_str());
  }
  return result;
}

nb::dict mapping_of(nb::handle object, const char* what) {
  const auto refuse = [what](const std::string& expected, nb::handle seen) {
    const std::string text = what + expected + ", not '" + nb::type_name(seen.type()).c_str() + "'";
    throw nb::type_error(text.c_str());
  };
  nb::dict mapping;
  if (!nb::try_cast<nb::dict>(object, mapping)) {
    if (!nb::hasattr(object, "keys")) refuse(": a dict of names and values is expected", object);
    mapping = nb::borrow<nb::dict>(imported("builtins", "dict")(object));
  }
  for (const auto& [name, value] : mapping) {
    if (!nb::isinstance<nb::str>(name)) refuse(": a name must be a str", name);
  }
  return mapping;
}

nb::object text_of(std::string_view utf8) {
  const auto size = static_cast<Py_ssize_t>(utf8.size());
  PyObject* const text = PyUnicode_DecodeUTF8(utf8.data(), size, "surrogateescape");
  if (text == nullptr) throw nb::python_error();
  return nb::steal(text);
}

std::string utf8_of(nb::handle text) {
  PyObject* const encoded = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape");
  if (encoded == nullptr) throw nb::python_error();
  const nb::bytes bytes = nb::steal<nb::bytes>(encoded);
  return {bytes.c_str(), bytes.size()};
}

std::map<std::string, std::string> options_of(nb::handle object, const char* what) {
  std::map<std::string, std::string> result;
  if (object.is_none()) return result;
  for (const auto& [name, value] : mapping_of(object, what)) {
    const bool is_bool = nb::isinstance<nb::bool_>(value);
    result[nb::cast<std::string>(name)] =
        is_bool ? (nb::cast<bool>(value) ? "1" : "0") : nb::cast<std::string>(nb::str(value));
  }
  return result;
}

void add_sync(nb::module_& module) {
  nb::class_<Cancel>(
      module, "Cancel",
      "A token for calls that may have to end early: after `set()`, from any thread, the compile or run\n"
      "that it was passed to raises Cancelled.")
      .def(nb::init<>())
      .def("set", &Cancel::set, "Ends all work that has this token, now and in the future.");
  nb::class_<PyStream>(module, "Stream",
                       "A device's queue of work, made by `Environment.stream`. Runs that are put into it start in\n"
                       "order, and the calls return without waiting, except the first one with new memory or shapes.")
      .def(
          "wait",
          [](PyStream& self, nb::handle timeout) {
            const auto bound = timeout_of(timeout);
            nb::gil_scoped_release unlocked;
            uint64_t deadline = BP_FOREVER;
            if (bound.count() > 0) {
              const auto end = std::chrono::steady_clock::now().time_since_epoch() + bound;
              deadline = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(end).count());
            }
            self.stream->wait(deadline);
          },
          nb::arg("timeout").none() = nb::none(), nb::sig("def wait(self, timeout: float | None = None) -> None"),
          "Waits until all work in the stream has ended, at most `timeout` seconds; raises the first failure of a\n"
          "run in it that was not raised before.")
      .def_prop_ro(
          "native", [](const PyStream& self) { return self.stream->native().handle; },
          "The driver's handle (a cl_command_queue, a cudaStream_t) as a number, valid while the stream lives.")
      .def_prop_ro(
          "device", [](const PyStream& self) { return self.device; }, "The device's name.")
      .def("__repr__", [](const PyStream& self) { return "Stream(device='" + self.device + "')"; });
}

}  // namespace backplane::python

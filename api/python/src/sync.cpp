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

std::map<std::string, std::string> options_of(nb::handle object, const char* what) {
  std::map<std::string, std::string> result;
  if (object.is_none()) return result;
  nb::dict options;
  if (!nb::try_cast<nb::dict>(object, options)) {
    const std::string text = std::string(what) + ": a dict of names and values is expected";
    throw nb::type_error(text.c_str());
  }
  for (const auto& [name, value] : options) {
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

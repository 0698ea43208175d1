// SPDX-License-Identifier: Apache-2.0
// Cancel tokens and streams.
#include "sync.h"

#include "convert.h"
#include "interrupt.h"

namespace backplane::python {

void add_sync(nb::module_& module) {
  Class<Cancel>(module, "Cancel", nb::is_weak_referenceable(),
                "A token for calls that may have to end early: after `set()`, from any thread, the compile or run\n"
                "that it was passed to raises Cancelled.")
      .def(nb::init<>())
      .def("set", &Cancel::set, "Ends all work that has this token, now and in the future.");
  Class<PyStream>(module, "Stream", nb::is_weak_referenceable(),
                  "A device's queue of work, made by `Environment.stream`. Runs that are put into it start in\n"
                  "order, and the calls return without waiting, except the first one with new memory or shapes.")
      .def(
          "wait",
          [](PyStream& self, nb::handle timeout) {
            const auto bound = timeout_of(timeout);
            const uint64_t end = bound.count() > 0 ? deadline_at(std::chrono::steady_clock::now() + bound) : BP_FOREVER;
            wait_in_parts(end, [&](uint64_t deadline) { self.stream->wait(deadline); });
          },
          nb::arg("timeout").none() = nb::none(), nb::sig("def wait(self, timeout: float | None = None) -> None"),
          "Waits until all work in the stream has ended, at most `timeout` seconds; raises the first failure of a\n"
          "run in it that was not raised before. On the main thread, the exception of a signal's\n"
          "handler (Ctrl-C) ends the wait.")
      .def_prop_ro(
          "native", [](const PyStream& self) { return self.stream->native().handle; },
          "The driver's handle (a cl_command_queue, a cudaStream_t) as a number, valid while the stream lives.")
      .def_prop_ro(
          "device", [](const PyStream& self) { return self.device; }, "The device's name.")
      .def("__repr__", [](const PyStream& self) { return "Stream(device='" + self.device + "')"; });
}

}  // namespace backplane::python

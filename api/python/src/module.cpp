// SPDX-License-Identifier: Apache-2.0
// The module backplane._core: classes for environments, devices, models, sessions, runs, streams, cancel tokens and
// arrays, and the exceptions.
#include "core.h"

NB_MODULE(_core, module) {
  using namespace backplane::python;
  // The loader's threads call Python through the interpreter that is current in the process, which is the main one.
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
    throw nb::import_error("backplane does not support sub-interpreters: import it in the main interpreter");
#ifdef NDEBUG
  nb::set_leak_warnings(false);
#endif
  module.doc() = "The loader's classes. Import them from `backplane`.";
  add_exit();
  add_errors(module);
  add_array(module);
  add_sync(module);
  add_environment(module);
  add_model(module);
  add_session(module);
  add_run(module);
  module.def(
      "loader_version",
      [] {
        const auto& table = backplane::api();
        return std::string(backplane::view::text(table.release));
      },
      "The release of the loader in use.");
  module.def(
      "abi_version",
      [] {
        const uint32_t version = backplane::api().version;
        return std::to_string(BP_VERSION_MAJOR(version)) + "." + std::to_string(BP_VERSION_MINOR(version));
      },
      "The ABI version of the loader in use.");
}

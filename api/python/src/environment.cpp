// SPDX-License-Identifier: Apache-2.0
// Environment, Device, Candidate.
#include "environment.h"

#include <nanobind/stl/vector.h>

#include <set>

#include "argument.h"
#include "convert.h"
#include "model.h"
#include "sync.h"

namespace backplane::python {
namespace {

std::string_view kind_name(uint32_t kind) {
  constexpr std::string_view kNames[] = {"other", "cpu", "gpu", "npu", "fpga", "other"};
  return kind < std::size(kNames) ? kNames[kind] : "other";
}

std::string_view refusal_name(uint32_t refusal) {
  constexpr std::string_view kNames[] = {"",          "missing", "manifest",   "not_a_library", "architecture",
                                         "link",      "symbol",  "descriptor", "version",       "sanitizer",
                                         "by_plugin", "id",      "duplicate",  "disabled",      "crashed",
                                         "create",    "devices", "untrusted",  "untried"};
  return refusal < std::size(kNames) ? kNames[refusal] : "unknown";
}

uint32_t log_level_of(std::string_view name) {
  if (name.empty()) return 0;
  constexpr std::pair<std::string_view, uint32_t> kLevels[] = {
      {"error", BP_LOG_ERROR}, {"warning", BP_LOG_WARNING}, {"info", BP_LOG_INFO}, {"debug", BP_LOG_DEBUG}};
  for (const auto& [text, level] : kLevels) {
    if (text == name) return level;
  }
  throw std::invalid_argument("log_level is '" + std::string(name) + "': it must be error, warning, info or debug");
}

std::string_view log_level_name(uint32_t level) {
  return level == BP_LOG_ERROR     ? "error"
         : level == BP_LOG_WARNING ? "warning"
         : level == BP_LOG_INFO    ? "info"
                                   : "debug";
}

// Calls a Python function with each line. No exception may cross the loader, so exceptions of the function are written
// to standard error.
std::function<void(uint32_t, std::string_view)> log_of(const std::shared_ptr<SharedObject>& function) {
  if (!function) return {};
  return [function](uint32_t level, std::string_view line) {
    if (!can_call_python()) return;
    const LockedScope locked;
    if (!can_call_python()) return;
    const nb::object called = function->get();
    if (!called.is_valid()) return;
    try {
      called(log_level_name(level), text_of(line));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a log function of backplane.Environment");
    }
  };
}

// Warns of settings of backends that were not found, because they have no effect.
void warn_of_ignored(const Environment& env, const std::map<std::string, std::string>& settings) {
  std::set<std::string, std::less<>> ids{"loader"};
  for (const bp_candidate_t& candidate : env.candidates()) ids.emplace(view::text(candidate.id));
  ids.erase("");
  for (const auto& [name, value] : settings) {
    const std::string id = name.substr(0, name.find('.'));
    if (ids.contains(id)) continue;
    std::string known;
    for (const std::string& each : ids) known += (known.empty() ? "" : ", ") + each;
    const nb::object text =
        text_of("the setting " + name + " is ignored: there is no backend '" + id + "'; settings begin with " + known);
    if (PyErr_WarnFormat(PyExc_UserWarning, 1, "%U", text.ptr()) != 0) throw nb::python_error();
  }
}

void create(PyEnvironment* self, nb::handle backend_files, nb::handle backend_folders, bool only_given,
            nb::handle settings, std::string_view log_level, nb::object log, nb::handle threads) {
  EnvironmentOptions what;
  what.backend_files = strings_of(backend_files, "backend_files");
  what.backend_folders = strings_of(backend_folders, "backend_folders");
  what.only_given = only_given;
  what.options = options_of(settings, "settings");
  what.log_level = log_level_of(log_level);
  if (!log.is_none() && !PyCallable_Check(log.ptr()))
    throw nb::type_error(("log is " + shown(log) + ": a function of a level and a line, or None, is expected").c_str());
  const auto held = log.is_none() ? nullptr : std::make_shared<SharedObject>(std::move(log));
  what.log = log_of(held);
  what.threads = converted<uint32_t>(threads, "threads", "a number of threads (0: one for each core)");
  std::optional<Environment> env;
  {
    const UnlockedScope unlocked;
    env.emplace(what);
  }
  try {
    warn_of_ignored(*env, what.options);
  } catch (...) {  // Python's filters may turn a warning into an exception
    const UnlockedScope unlocked;
    env.reset();
    throw;
  }
  new (self) PyEnvironment(std::move(*env), held);
}

// A device's name, from that name or a Device.
std::string device_of(nb::handle device) {
  if (nb::isinstance<PyDevice>(device)) return nb::cast<const PyDevice&>(device).device.name;
  if (nb::isinstance<nb::str>(device)) return utf8_of(device);
  throw nb::type_error(("device is " + shown(device) + ": a device's name or a Device is expected").c_str());
}

// A data type, from its name or anything that NumPy takes for a type.
bp_dtype_t dtype_of(nb::handle dtype) {
  if (nb::isinstance<nb::str>(dtype)) return dtype_of_name(utf8_of(dtype));
  const nb::object known = imported("numpy", "dtype")(dtype);
  return dtype_of_name(utf8_of(nb::object(known.attr("name"))));
}

Device find(const Environment& env, std::string_view name) {
  std::string known;
  for (Device& device : env.devices()) {
    if (device.is_named(name)) return std::move(device);
    known += (known.empty() ? "" : ", ") + device.name;
  }
  throw Error(BP_NOT_FOUND,
              "there is no device '" + std::string(name) + "'; " +
                  (known.empty() ? "no backend was accepted: see Environment.candidates" : "there are: " + known));
}

nb::object allocate(const PyEnvironment& self, std::vector<int64_t> shape, bp_dtype_t type, nb::handle device) {
  check_rank(shape.size(), "shape");
  const Device where = find(*self, device_of(device));
  const auto bytes = view::dense_bytes(type, shape.data(), static_cast<uint32_t>(shape.size()));
  if (view::dtype_bits(type) == 0)
    throw std::invalid_argument("dtype is '" + std::string(dtype_name(type)) +
                                "': only arrays of a type with a fixed width can be allocated");
  if (!bytes) {
    std::string text;
    for (const int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
    throw std::invalid_argument("shape is [" + text + "]: extents must be 0 or more, and the array must fit in memory");
  }
  uint32_t space = 0;  // the device's own memory, if it has such a space
  for (uint32_t i = 0; i < where.info.space_count; ++i) {
    bp_space_t facts{};
    facts.size = sizeof facts;
    client::detail::call(api().memory_space, self.get(), where.info.id, i, &facts);
    if ((facts.flags & BP_SPACE_DEVICE) != 0) space = i;
  }
  std::optional<Buffer> buffer;
  {
    const UnlockedScope unlocked;
    buffer.emplace(self->allocate(where.info.id, std::max<uint64_t>(*bytes, 1), space));
  }
  auto array = std::make_unique<Array>(*self, type, std::move(shape), buffer->abi());
  array->keep(*buffer);
  buffer.reset();
  return nb::cast(array.release(), nb::rv_policy::take_ownership);
}

nb::object put(const PyEnvironment& self, nb::handle value, nb::handle device) {
  const Argument from = Argument::of(*self, value, {{}, BP_DTYPE_UNDEFINED, false, true});
  const bp_tensor_t tensor = from.abi();
  nb::object result =
      allocate(self, std::vector<int64_t>(tensor.extents, tensor.extents + tensor.rank), tensor.dtype, device);
  const bp_buffer_t to = nb::cast<const Array&>(result).buffer();
  const UnlockedScope unlocked;
  self->copy(tensor.buffer, to, tensor.buffer.bytes);
  return result;
}

nb::object stream(const PyEnvironment& self, nb::handle name, nb::handle given) {
  const auto native = converted<uint64_t>(given, "native", "the driver's handle as a number (0: a new stream)");
  const Device device = find(*self, device_of(name));
  std::optional<Stream> made;
  {
    const UnlockedScope unlocked;
    bp_native_t handle{};
    handle.size = sizeof handle;
    handle.kind = device.name.substr(0, 4) == "cuda" ? BP_NATIVE_CUDA_STREAM : BP_NATIVE_CL_QUEUE;
    handle.handle = native;
    made.emplace(self->stream(device.info.id, native == 0 ? nullptr : &handle));
  }
  auto* result = new PyStream{Unlocked<Environment>(*self), Unlocked<Stream>(std::move(*made)), device.name};
  return nb::cast(result, nb::rv_policy::take_ownership);
}

}  // namespace

void add_environment(nb::module_& module) {
  Class<PyDevice>(module, "Device", nb::is_weak_referenceable(), "A device that a backend offers.")
      .def_prop_ro(
          "name", [](const PyDevice& self) { return self.device.name; },
          "The name that options use: 'cpu', 'opencl:1'.")
      .def_prop_ro(
          "kind", [](const PyDevice& self) { return kind_name(self.device.info.kind); },
          "'cpu', 'gpu', 'npu', 'fpga' or 'other'.")
      .def_prop_ro(
          "description", [](const PyDevice& self) { return view::text(self.device.info.name); }, "The product's name.")
      .def_prop_ro("vendor", [](const PyDevice& self) { return view::text(self.device.info.vendor); })
      .def_prop_ro(
          "driver", [](const PyDevice& self) { return view::text(self.device.info.driver); }, "The driver's version.")
      .def_prop_ro(
          "arch", [](const PyDevice& self) { return view::text(self.device.info.arch); },
          "The architecture that compiled programs need: 'sm_90'.")
      .def_prop_ro(
          "memory_bytes", [](const PyDevice& self) { return self.device.info.memory_bytes; },
          "The memory's size, 0 when unknown.")
      .def_prop_ro(
          "dtypes",
          [](const PyDevice& self) {
            std::vector<std::string> names;
            for (bp_dtype_t dtype = 1; dtype < 64; ++dtype) {
              if ((self.device.info.dtypes >> dtype & 1) != 0) names.emplace_back(dtype_name(dtype));
            }
            return names;
          },
          nb::sig("def dtypes(self) -> list[str]"), "The types that values on the device may have.")
      .def("__str__", [](const PyDevice& self) { return self.device.name; })
      .def(
          "__eq__",
          [](const PyDevice& self, nb::handle other) -> nb::object {
            if (!nb::isinstance<PyDevice>(other)) return nb::borrow(Py_NotImplemented);
            const auto& to = nb::cast<const PyDevice&>(other);
            return nb::bool_(to.env->get() == self.env->get() && to.device.info.id == self.device.info.id);
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"),
          "Whether it is the same device of the same environment.")
      .def("__hash__", [](const PyDevice& self) { return self.device.info.id; })
      .def("__repr__", [](const PyDevice& self) {
        return "Device('" + self.device.name + "', kind='" + std::string(kind_name(self.device.info.kind)) + "', '" +
               std::string(view::text(self.device.info.name)) + "')";
      });
  Class<PyCandidate>(module, "Candidate", nb::is_weak_referenceable(), "A file that was considered as a backend.")
      .def_prop_ro(
          "id", [](const PyCandidate& self) { return view::text(self.candidate.id); },
          "The backend's id, empty if unknown.")
      .def_prop_ro("accepted", [](const PyCandidate& self) { return self.candidate.refusal == BP_REFUSED_NONE; })
      .def_prop_ro(
          "refusal", [](const PyCandidate& self) { return refusal_name(self.candidate.refusal); },
          "Why it was refused: 'missing', 'manifest', 'link', 'devices', …; empty if it was accepted.")
      .def_prop_ro(
          "text", [](const PyCandidate& self) { return view::text(self.candidate.text); },
          "The whole explanation in one line.")
      .def_prop_ro(
          "library", [](const PyCandidate& self) { return view::text(self.candidate.library); },
          "The library's path, or empty.")
      .def_prop_ro(
          "manifest", [](const PyCandidate& self) { return view::text(self.candidate.manifest); },
          "The manifest's path, or empty.")
      .def("__repr__", [](const PyCandidate& self) {
        const bool accepted = self.candidate.refusal == BP_REFUSED_NONE;
        return "Candidate('" + std::string(view::text(self.candidate.id)) + "', " +
               (accepted ? std::string("accepted") : "refused: " + std::string(refusal_name(self.candidate.refusal))) +
               ")";
      });
  Class<PyEnvironment>(
      module, "Environment", nb::is_weak_referenceable(), nb::type_slots(Collected<PyEnvironment>::kSlots),
      "Backends that were found, and settings. Thread-safe.\n\n"
      "Args:\n"
      "    backend_files: libraries or manifests of backends, searched before all others.\n"
      "    backend_folders: folders of manifests.\n"
      "    only_given: do not search anywhere else.\n"
      "    settings: 'loader.<name>' and '<backend>.<name>', for example {'cpu.threads': 4, 'loader.cache': ''}.\n"
      "    log_level: 'error', 'warning', 'info' or 'debug'; empty: the variable BACKPLANE_LOG, otherwise warnings.\n"
      "    log: called with the level's name and each line, from any thread; None: the file that BACKPLANE_LOG_FILE\n"
      "        names, otherwise standard error.\n"
      "    threads: the number of threads that the backends share; 0: one for each core that the process may use.\n\n"
      "Raises:\n"
      "    NotFound: an unknown loader option.\n"
      "    InvalidArgument: an invalid value of a loader option.")
      .def("__init__", &create, nb::kw_only(), nb::arg("backend_files").none() = nb::none(),
           nb::arg("backend_folders").none() = nb::none(), nb::arg("only_given") = false,
           nb::arg("settings").none() = nb::none(), nb::arg("log_level") = "", nb::arg("log").none() = nb::none(),
           nb::arg("threads").none() = 0,
           nb::sig("def __init__(self, *, backend_files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | "
                   "None = None, "
                   "backend_folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None, "
                   "only_given: bool = False, settings: Mapping[str, object] | None = None, log_level: str = '', "
                   "log: Callable[[str, str], object] | None = None, threads: int = 0) -> None"))
      .def_prop_ro(
          "devices",
          [](const PyEnvironment& self) {
            nb::list result;
            for (Device& device : self->devices()) {
              result.append(nb::cast(new PyDevice{Unlocked<Environment>(*self), std::move(device)},
                                     nb::rv_policy::take_ownership));
            }
            return result;
          },
          nb::sig("def devices(self) -> list[Device]"), "The devices of all backends.")
      .def(
          "device",
          [](const PyEnvironment& self, std::string_view name) {
            return nb::cast(new PyDevice{Unlocked<Environment>(*self), find(*self, name)},
                            nb::rv_policy::take_ownership);
          },
          nb::arg("name"), nb::sig("def device(self, name: str) -> Device"),
          "The device of that name ('cpu' is also 'cpu:0'). Raises NotFound with the names of all devices.")
      .def_prop_ro(
          "candidates",
          [](const PyEnvironment& self) {
            nb::list result;
            for (const bp_candidate_t& candidate : self->candidates()) {
              result.append(
                  nb::cast(new PyCandidate{Unlocked<Environment>(*self), candidate}, nb::rv_policy::take_ownership));
            }
            return result;
          },
          nb::sig("def candidates(self) -> list[Candidate]"),
          "Every file that was considered, with the reason if it was refused.")
      .def(
          "report", [](const PyEnvironment& self) { return imported("json", "loads")(self->report()); },
          nb::sig("def report(self) -> dict[str, Any]"), "What `backplane list --json` prints, as a dict.")
      .def("load", &load_model, nb::arg("source").none(), nb::kw_only(), nb::arg("directory").none() = nb::none(),
           nb::arg("weights").none() = nb::none(),
           nb::sig(
               "def load(self, source: str | os.PathLike[str] | bytes | bytearray | memoryview | onnx.ModelProto, *, "
               "directory: str | os.PathLike[str] | None = None, weights: Mapping[str, Value] | None = None) -> "
               "Model"),
           "Reads, checks and canonicalizes a model.\n\n"
           "Args:\n"
           "    source: a file's path, the bytes of a model, or an onnx.ModelProto. Bytes are kept, not copied.\n"
           "    directory: the folder of the external data of bytes or a ModelProto.\n"
           "    weights: arrays by name that become the initializers of these names. They are kept, and copied only if "
           "they\n"
           "        are not C-contiguous.\n\n"
           "Raises:\n"
           "    NotFound, PermissionDenied, IoError: the file.\n"
           "    InvalidModel: the model breaks ONNX's rules; the text names the node.\n"
           "    TypeMismatch: a weight does not fit what the model declares.\n"
           "    ResourceExhausted, TimedOut: the settings loader.import_bytes and loader.import_seconds.")
      .def(
          "allocate",
          [](const PyEnvironment& self, nb::handle shape, nb::handle dtype, nb::handle device) {
            return allocate(self, extents_of(shape, "shape"), dtype_of(dtype), device);
          },
          nb::arg("shape").none(), nb::arg("dtype"), nb::kw_only(), nb::arg("device"),
          nb::sig("def allocate(self, shape: Sequence[int], dtype: DTypeLike, *, device: str | Device) -> Array"),
          "Memory of a device, not initialized, released with the Array.")
      .def("put", &put, nb::arg("array").none(), nb::kw_only(), nb::arg("device"),
           nb::sig("def put(self, array: Value, *, device: str | Device) -> Array"), "A copy of an array on a device.")
      .def(
          "from_dlpack",
          [](const PyEnvironment& self, nb::handle value) { return import_dlpack(*self, value, "the array", false); },
          nb::arg("array").none(), nb::sig("def from_dlpack(self, array: SupportsDLPack) -> Array"),
          "The memory of another package's array, on the host or on a device, without a copy.\n\n"
          "Raises:\n"
          "    ValueError: the array is not C-contiguous, or its address on the host is not a multiple of an element's "
          "size.\n"
          "    NotFound: no backend has the device.\n"
          "    Unsupported: the device cannot import the memory.")
      .def("stream", &stream, nb::arg("device"), nb::kw_only(), nb::arg("native").none() = 0,
           nb::sig("def stream(self, device: str | Device, *, native: int = 0) -> Stream"),
           "A stream of a device: new, or the application's own by the driver's handle (a cl_command_queue, a "
           "cudaStream_t).\n\n"
           "Raises:\n"
           "    Unsupported: the device has no streams.")
      .def(
          "trace", [](nb::handle self, nb::handle path) { return imported("backplane.trace", "Trace")(self, path); },
          nb::arg("path").none() = nb::none(),
          nb::sig("def trace(self, path: str | os.PathLike[str] | None = None) -> Trace"),
          "A context manager that collects the spans of all sessions, and writes them to `path` at the end.")
      .def("_start_trace", [](const PyEnvironment& self) { self->start_trace(); })
      .def("_stop_trace", [](const PyEnvironment& self) { return self->stop_trace(); })
      .def("__repr__", [](const PyEnvironment& self) {
        std::string names;
        for (const Device& device : self->devices()) names += (names.empty() ? "'" : ", '") + device.name + "'";
        return "Environment(devices=[" + names + "])";
      });
}

}  // namespace backplane::python

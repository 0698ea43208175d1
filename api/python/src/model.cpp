// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <nanobind/stl/vector.h>

#include "argument.h"
#include "container.h"
#include "convert.h"
#include "interrupt.h"
#include "session.h"

namespace backplane::python {
namespace {

// The Python objects whose memory a model borrows until it and its sessions are destroyed.
struct Kept {
  nb::object bytes;
  Py_buffer buffer{};
  std::vector<std::string> names;
  std::vector<Argument> weights;

  Kept() = default;
  Kept(Kept&&) = delete;
  ~Kept() {
    if (bytes.is_valid()) PyBuffer_Release(&buffer);
  }
};

void release(void* self) {
  if (!can_call_python()) return;  // the objects are leaked, or no longer exist
  const LockedScope locked;
  if (can_call_python()) delete static_cast<Kept*>(self);
}

std::string path_of(nb::handle object, const char* what) {
  const nb::bytes path = nb::borrow<nb::bytes>(imported("os", "fsencode")(object));
  std::string text(path.c_str(), path.size());
  if (text.find('\0') != text.npos)
    throw std::invalid_argument(std::string(what) + " is " + shown(object) + ": a path cannot have a null character");
  return text;
}

// Returns the bytes of an onnx.ModelProto, or any other object itself.
nb::object serialized(nb::handle source) {
  if (!nb::hasattr(source, "SerializeToString")) return nb::borrow(source);
  if (nb::hasattr(source, "DESCRIPTOR") &&
      !nb::object(source.attr("DESCRIPTOR").attr("name")).equal(nb::str("ModelProto")))
    return nb::borrow(source);  // another protobuf message: the caller refuses it, because it is not a buffer
  return source.attr("SerializeToString")();
}

bool is_path(nb::handle object) {
  return nb::isinstance<nb::str>(object) || nb::hasattr(object, "__fspath__");
}

uint32_t fallback_of(nb::handle name) {
  if (nb::isinstance<nb::str>(name)) {
    const std::string text = utf8_of(name);
    if (text == "allow") return BP_FALLBACK_ALLOW;
    if (text == "prefer") return BP_FALLBACK_PREFER;
    if (text == "forbid") return BP_FALLBACK_FORBID;
  }
  throw std::invalid_argument("fallback is " + shown(name) + ": it must be 'allow', 'prefer' or 'forbid'");
}

uint32_t compute_types_of(nb::handle names) {
  constexpr std::pair<std::string_view, uint32_t> kTypes[] = {{"tf32", BP_COMPUTE_TF32},
                                                              {"bf16", BP_COMPUTE_BF16},
                                                              {"fp16", BP_COMPUTE_FP16},
                                                              {"fp16_accumulate", BP_COMPUTE_FP16_ACCUMULATE},
                                                              {"fp8", BP_COMPUTE_FP8}};
  uint32_t mask = 0;
  for (const std::string& name : strings_of(names, "compute_types")) {
    const auto* found =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& type) { return type.first == name; });
    if (found == std::end(kTypes))
      throw std::invalid_argument("compute_types has '" + name +
                                  "': tf32, bf16, fp16, fp16_accumulate and fp8 are known");
    mask |= found->second;
  }
  return mask;
}

// Converts a backplane.SessionOptions.
SessionOptions options_from(nb::handle from) {
  SessionOptions options;
  options.devices = strings_of(from.attr("devices"), "devices");
  options.fallback = fallback_of(from.attr("fallback"));
  options.compute_types = compute_types_of(from.attr("compute_types"));
  options.pins = options_of(from.attr("pins"), "pins");
  options.options = options_of(from.attr("settings"), "settings");
  options.max_islands =
      converted<uint32_t>(from.attr("max_islands"), "max_islands", "a number of islands (0: no limit)");
  nb::object dims = from.attr("dims");
  if (!dims.is_none()) {
    for (const auto& [name, value] : mapping_of(dims, "dims")) {
      std::pair<int64_t, int64_t> range;
      int64_t extent = 0;
      if (nb::try_cast<int64_t>(value, extent)) {
        range = {extent, extent};
      } else if (!nb::isinstance<nb::sequence>(value) || nb::len(value) != 2 ||
                 !nb::try_cast<int64_t>(value[0], range.first) || !nb::try_cast<int64_t>(value[1], range.second)) {
        const std::string text = "dims: the extent of " + shown(name) + " is " + shown(value) +
                                 ": it must be a number, or a pair of the minimum and the maximum";
        throw nb::type_error(text.c_str());
      }
      options.symbols[utf8_of(name)] = range;
    }
  }
  if (converted<bool>(from.attr("refit"), "refit", "True or False")) options.flags |= BP_SESSION_REFIT;
  if (converted<bool>(from.attr("place_only"), "place_only", "True or False")) options.flags |= BP_SESSION_PLACE_ONLY;
  options.cancel = converted<const Cancel*>(from.attr("cancel"), "cancel", "a backplane.Cancel or None");
  return options;
}

nb::object compile(const PyModel& self, nb::object options, const nb::kwargs& changes) {
  nb::object resolved = imported("backplane.options", "resolve")(options, changes);
  SessionOptions what = options_from(resolved);
  std::shared_ptr<SessionState> state;
  try {
    with_signals(what.cancel, [&](const Cancel* cancel) {
      what.cancel = cancel;
      state = std::make_shared<SessionState>(*self.env, *self.model, self.env->compile(*self.model, what));
    });
  } catch (...) {
    const UnlockedScope unlocked;
    state.reset();
    throw;
  }
  return make_session(std::move(state));
}

std::string describe(const PyModel& self) {
  const auto list = [](const std::vector<view::Value>& values) {
    std::string text;
    for (const view::Value& value : values) {
      text +=
          (text.empty() ? "" : ", ") + std::string(value.name()) + ": " + type_text(value.graph(), value.raw().type);
    }
    return text;
  };
  const view::Graph graph = self.model->graph();
  return "Model(" + list(graph.inputs()) + " -> " + list(graph.outputs()) +
         "; nodes: " + std::to_string(graph.node_count()) + ")";
}

}  // namespace

ValueInfo value_info(view::Value value) {
  constexpr std::string_view kKinds[] = {"unknown", "tensor", "sparse_tensor", "sequence", "optional", "map"};
  const uint32_t kind = value.type().kind;
  ValueInfo info{std::string(value.name()), kind < std::size(kKinds) ? kKinds[kind] : "unknown",
                 dtype_name(value.dtype()), nb::none(), type_text(value.graph(), value.raw().type)};
  if (kind == BP_KIND_TENSOR && value.rank() >= 0) {
    nb::list shape;
    for (uint32_t i = 0; i < static_cast<uint32_t>(value.rank()); ++i) {
      if (value.extent(i) >= 0) {
        shape.append(value.extent(i));
      } else if (!value.symbol(i).empty()) {
        shape.append(value.symbol(i));
      } else {
        shape.append(nb::none());
      }
    }
    info.shape = nb::tuple(shape);
  }
  return info;
}

nb::list value_infos(const std::vector<view::Value>& values) {
  nb::list result;
  for (const view::Value& value : values) result.append(nb::cast(value_info(value)));
  return result;
}

nb::object load_model(const PyEnvironment& env, nb::handle source, nb::handle directory, nb::handle weights) {
  bp_model_source_t what{};
  what.size = sizeof what;
  what.descriptor = -1;
  std::string path, folder;
  auto kept = std::make_unique<Kept>();
  if (is_path(source)) {
    path = path_of(source, "source");
    if (path.empty()) throw std::invalid_argument("source is '': the path of a model is expected");
    what.path = view::text(path);
  } else {
    nb::object bytes = serialized(source);
    if (PyObject_GetBuffer(bytes.ptr(), &kept->buffer, PyBUF_SIMPLE) != 0) {
      if (PyObject_CheckBuffer(bytes.ptr())) {
        nb::python_error error;
        if (!error.matches(PyExc_BufferError)) throw error;  // such as a memoryview that was released
        nb::raise_from(error, PyExc_ValueError, "source is a buffer that is not C-contiguous: pass bytes(source)");
      }
      PyErr_Clear();
      const std::string text = "a model is a path, bytes or an onnx.ModelProto, not '" +
                               std::string(nb::type_name(source.type()).c_str()) + "'";
      throw nb::type_error(text.c_str());
    }
    kept->bytes = std::move(bytes);
    what.bytes = {kept->buffer.buf, static_cast<uint64_t>(kept->buffer.len)};
  }
  if (!directory.is_none()) folder = path_of(directory, "directory");
  what.directory = view::text(folder);

  if (!weights.is_none()) {
    for (const auto& [name, value] : mapping_of(weights, "weights")) {
      kept->names.push_back(utf8_of(name));
      const std::string label = "weight '" + kept->names.back() + "'";
      kept->weights.push_back(Argument::of(*env, value, {label, BP_DTYPE_UNDEFINED, false, true}));
    }
  }
  std::vector<bp_tensor_t> tensors;
  std::vector<bp_named_tensor_t> named;
  for (const Argument& weight : kept->weights) tensors.push_back(weight.abi());
  for (size_t i = 0; i < tensors.size(); ++i) named.push_back({view::text(kept->names[i]), &tensors[i]});
  what.weights = named.data();
  what.weight_count = static_cast<uint32_t>(named.size());
  what.weight_stride = sizeof(bp_named_tensor_t);
  what.self = kept.get();
  what.release = release;
  bp_model_t* model = nullptr;
  {
    const UnlockedScope unlocked;
    client::detail::call(api().model_open, env.get(), static_cast<const bp_model_source_t*>(&what), &model);
  }
  (void)kept.release();  // now owned by the model
  return nb::cast(new PyModel{Unlocked<Environment>(*env), Unlocked<Model>(Model(model))},
                  nb::rv_policy::take_ownership);
}

// The options that compile, explain and profile share, for their signatures.
#define OPTIONS                                                                                                 \
  "devices: str | Device | Sequence[str | Device] = (), fallback: str = 'allow', compute_types: Sequence[str] " \
  "= (), pins: Mapping[str, str] | None = None, dims: Mapping[str, int | tuple[int, int]] | None = None, "      \
  "settings: Mapping[str, object] | None = None, max_islands: int = 0, refit: bool = False"

void add_model(nb::module_& module) {
  Class<ValueInfo>(module, "ValueInfo", nb::is_weak_referenceable(), "An input or output as the model declares it.")
      .def_ro("name", &ValueInfo::name)
      .def_ro("kind", &ValueInfo::kind, "'tensor', 'sequence', 'optional', 'map' or 'sparse_tensor'.")
      .def_ro("dtype", &ValueInfo::dtype, "The type of a tensor's elements or of a map's keys: 'float32', 'string'.")
      .def_ro(
          "shape", &ValueInfo::shape, nb::sig("def shape(self) -> tuple[int | str | None, ...] | None"),
          "Extents: a number, the name of a symbolic dimension, or None; without a rank, None in place of the tuple.")
      .def_ro("type", &ValueInfo::type, "The whole type as text: 'float32[N,3]', 'seq(map(string,float32[]))'.")
      .def("__repr__", [](const ValueInfo& self) { return self.name + ": " + self.type; });
  Class<PyModel>(module, "Model", nb::is_weak_referenceable(),
                 "A model, checked and canonical: operators in their newest form, types and shapes inferred.\n"
                 "Made by `load`. Thread-safe.")
      .def_prop_ro(
          "inputs", [](const PyModel& self) { return value_infos(self.model->graph().inputs()); },
          nb::sig("def inputs(self) -> list[ValueInfo]"), "The model's inputs, in its order.")
      .def_prop_ro(
          "outputs", [](const PyModel& self) { return value_infos(self.model->graph().outputs()); },
          nb::sig("def outputs(self) -> list[ValueInfo]"), "The model's outputs, in its order.")
      .def(
          "report", [](const PyModel& self) { return imported("json", "loads")(self.model->report()); },
          nb::sig("def report(self) -> dict[str, Any]"),
          "Operator sets, operators, weights, metadata and problems: what `backplane info --json` prints, without "
          "`uncovered`.")
      .def("compile", &compile, nb::arg("options").none() = nb::none(), nb::arg("changes"),
           nb::sig("def compile(self, options: SessionOptions | None = None, *, " OPTIONS
                   ", place_only: bool = False, cancel: Cancel | None = None) -> Session"),
           "Places the model on devices and compiles it. The interpreter lock is released meanwhile.\n"
           "On the main thread, the exception of a signal's handler (Ctrl-C) ends it.\n\n"
           "Args:\n"
           "    options: a SessionOptions; the keywords change a copy of it.\n"
           "    devices, fallback, …: see the fields of SessionOptions.\n\n"
           "Raises:\n"
           "    Unsupported: a node that no device supports; the text has the reason of each device.\n"
           "    NotFound: a device, dimension or option.\n"
           "    Cancelled: the token was set.")
      .def(
          "explain",
          [](nb::handle self, const nb::kwargs& changes) {
            auto with = nb::borrow<nb::dict>(changes);
            with["place_only"] = true;
            return self.attr("compile")(**with).attr("explain")();
          },
          nb::sig("def explain(self, *, options: SessionOptions | None = None, " OPTIONS
                  ", cancel: Cancel | None = None) -> Explanation"),
          "Which device would run which node, and why, without compiling. Takes the same arguments as `compile`.")
      .def(
          "profile",
          [](nb::handle self, const nb::kwargs& changes) {
            return imported("backplane.explanation", "profile")(self, **changes);
          },
          nb::sig("def profile(self, *, options: SessionOptions | None = None, " OPTIONS
                  ", cancel: Cancel | None = None) -> Profile"),
          "Measures each node on each device, for later placements on this machine too. Takes the arguments of\n"
          "`compile`; the times are kept in the cache folder.")
      .def("__repr__", &describe);
}

}  // namespace backplane::python

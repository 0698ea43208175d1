// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <algorithm>
#include <thread>

#include "completion.h"
#include "convert.h"
#include "model.h"
#include "run.h"

namespace backplane::python {
namespace {

struct PySession {
  Unlocked<std::shared_ptr<SessionState>> state;
  SessionState& operator*() const { return **state; }
  SessionState* operator->() const { return state->get(); }
};

std::vector<Slot> slots_of(const std::vector<view::Value>& values, const char* kind) {
  std::vector<Slot> slots;
  for (const view::Value& value : values) {
    Slot slot;
    slot.name = value.name();
    slot.label = std::string(kind) + " '" + slot.name + "'";
    slot.type = value.raw().type;
    slot.is_tensor = value.is_tensor();
    slot.dtype = value.dtype();
    if (slot.is_tensor && value.has_static_shape() && view::dtype_bits(slot.dtype) >= 8) {
      slot.extents = value.extents();
      const auto bytes = view::dense_bytes(slot.dtype, slot.extents.data(), static_cast<uint32_t>(slot.extents.size()));
      slot.has_static_shape = bytes.has_value();
      slot.bytes = bytes.value_or(0);
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

// The bindings of one call of `run`. They live until the call has ended.
struct Bindings {
  std::vector<Binding> inputs;
  std::vector<HostMemory> outputs;
};

bp_tensor_t tensor_of(const Slot& slot, const HostMemory& memory) {
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = slot.dtype;
  tensor.rank = static_cast<uint32_t>(slot.extents.size());
  tensor.extents = slot.extents.data();
  tensor.buffer.address = memory.data.get();
  tensor.buffer.bytes = slot.bytes;
  return tensor;
}

Bindings bind_all(const SessionState& state, Lane& lane, nb::handle given) {
  const nb::dict inputs = mapping_of(given, "inputs");
  Bindings bindings;
  bindings.inputs.reserve(nb::len(inputs));
  std::vector<bool> bound(state.inputs().size());
  for (const auto& [name, value] : inputs) {
    const uint32_t input = state.find_input(name_of(name));
    bindings.inputs.push_back(bind_input(state, lane.exec, input, value, true));
    bound[input] = true;
  }
  for (uint32_t i = 0; i < bound.size(); ++i) {
    if (!bound[i] && lane.inputs[i]) lane.exec.unbind(i);
  }
  lane.inputs = std::move(bound);
  lane.outputs = true;
  for (uint32_t i = 0; i < state.outputs().size(); ++i) {
    const Slot& slot = state.outputs()[i];
    bindings.outputs.push_back(slot.has_static_shape ? allocate_host(slot.bytes) : HostMemory{});
    if (!slot.has_static_shape) continue;
    lane.exec.bind_memory(BP_SLOT_OUTPUT + i, tensor_of(slot, bindings.outputs.back()));
  }
  return bindings;
}

// Returns results by name. Results with a static shape take over the memory that was bound.
nb::dict collect(const SessionState& state, const Exec& exec, Bindings& bindings, const std::vector<uint32_t>& wanted) {
  nb::dict results;
  for (const uint32_t i : wanted) {
    const Slot& slot = state.outputs()[i];
    results[nb::str(slot.name.data(), slot.name.size())] =
        slot.has_static_shape ? adopt_host(std::move(bindings.outputs[i]), slot.dtype, slot.extents.data(),
                                           static_cast<uint32_t>(slot.extents.size()))
                              : read_output(state, exec, i);
  }
  return results;
}

nb::dict run(PySession& self, nb::handle inputs, nb::handle outputs, nb::handle timeout, const Cancel* cancel) {
  SessionState& state = *self;
  const std::vector<uint32_t> wanted = state.find_outputs(outputs);
  RunOptions how;
  how.timeout = timeout_of(timeout);
  how.cancel = cancel;
  Lane lane = state.take();
  Bindings bindings;
  try {
    bindings = bind_all(state, lane, inputs);
    uint64_t bytes = 0;
    for (const Binding& binding : bindings.inputs) bytes += binding.argument ? binding.argument->bytes() : 0;
    run_exec(state, lane.exec, how, bytes, lane.quick);
  } catch (const Error& error) {
    // Leaks the bound memory, because an abandoned device may still write to it.
    if (error.abandoned()) (void)new Bindings(std::move(bindings));
    throw;  // the exec may be lost, so it is not returned: the next run creates one
  }
  nb::dict results = collect(state, lane.exec, bindings, wanted);
  state.give_back(std::move(lane));
  return results;
}

nb::object call(PySession& self, const nb::args& arrays, const nb::kwargs& named) {
  const SessionState& state = *self;
  if (arrays.size() > state.inputs().size()) {
    const std::string text = "the model has " + std::to_string(state.inputs().size()) + " inputs, and " +
                             std::to_string(arrays.size()) + " arrays were passed";
    throw nb::type_error(text.c_str());
  }
  auto inputs = nb::borrow<nb::dict>(named);
  for (size_t i = 0; i < arrays.size(); ++i) {
    const char* name = state.inputs()[i].name.c_str();
    if (inputs.contains(name)) {
      const std::string text = state.inputs()[i].label + " was passed both by position and by name";
      throw nb::type_error(text.c_str());
    }
    inputs[name] = arrays[i];
  }
  const nb::dict results = run(self, inputs, nb::none(), nb::none(), nullptr);
  nb::list values;
  for (const Slot& slot : state.outputs()) values.append(results[slot.name.c_str()]);
  return nb::len(values) == 1 ? nb::object(values[0]) : nb::object(nb::tuple(values));
}

void refit(PySession& self, nb::handle weights) {
  std::vector<std::string> names;
  std::vector<Argument> arguments;
  for (const auto& [name, value] : mapping_of(weights, "weights")) {
    names.push_back(utf8_of(name));
    const std::string label = "weight '" + names.back() + "'";
    arguments.push_back(Argument::of(self->env(), value, {label, BP_DTYPE_UNDEFINED, false, true}));
  }
  std::vector<bp_tensor_t> tensors;
  std::vector<bp_named_tensor_t> named;
  for (const Argument& argument : arguments) tensors.push_back(argument.abi());
  for (size_t i = 0; i < tensors.size(); ++i) named.push_back({view::text(names[i]), &tensors[i]});
  bp_session_refit_t what{};
  what.size = sizeof what;
  what.count = static_cast<uint32_t>(named.size());
  what.weights = named.data();
  what.stride = sizeof(bp_named_tensor_t);
  const UnlockedScope unlocked;
  client::detail::call(api().session_refit, self->session().get(), static_cast<const bp_session_refit_t*>(&what));
}

nb::object read_weight(PySession& self, std::string_view name) {
  const view::Graph graph(self->graph());
  for (uint32_t i = 0; i < graph.raw()->value_count; ++i) {
    const view::Value value = graph.value(i);
    const bp_weight_t* weight = value.weight();
    if (weight == nullptr || value.name() != name) continue;
    std::vector<int64_t> extents;
    for (uint32_t k = 0; k < weight->rank; ++k) extents.push_back(graph.raw()->dims[weight->first_dim + k].extent);
    const HostMemory memory = allocate_host(weight->bytes);
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = weight->dtype;
    tensor.rank = weight->rank;
    tensor.extents = extents.data();
    tensor.buffer.address = memory.data.get();
    tensor.buffer.bytes = weight->bytes;
    {
      const UnlockedScope unlocked;
      client::detail::call(api().session_read_weight, static_cast<const bp_session_t*>(self->session().get()),
                           view::text(name), &tensor);
    }
    return copy_to_numpy(self->env(), tensor);
  }
  throw Error(BP_NOT_FOUND, "the model has no weight '" + std::string(name) + "'");
}

bool has_loop(const bp_graph_t* graph) {
  for (const view::Node& node : view::Graph(graph).nodes()) {
    if (node.op_type() == "Loop") return true;
  }
  return std::any_of(graph->subgraphs, graph->subgraphs + graph->subgraph_count, has_loop);
}

std::string describe_session(const PySession& self) {
  const auto list = [&](const std::vector<Slot>& slots) {
    std::string text;
    for (const Slot& slot : slots)
      text += (text.empty() ? "" : ", ") + slot.name + ": " + type_text(self->graph(), slot.type);
    return text;
  };
  return "Session(" + list(self->inputs()) + " -> " + list(self->outputs()) + ")";
}

}  // namespace

SessionState::SessionState(Environment env, Model model, Session session)
    : env_(std::move(env)), model_(std::move(model)), session_(std::move(session)) {
  graph_ = api().session_graph == nullptr ? nullptr : api().session_graph(session_.get());
  if (graph_ == nullptr) graph_ = model_.graph().raw();
  const view::Graph graph(graph_);
  inputs_ = slots_of(graph.inputs(), "input");
  outputs_ = slots_of(graph.outputs(), "output");
  is_steady_ =
      !has_loop(graph_) && std::all_of(inputs_.begin(), inputs_.end(), [](auto& slot) { return slot.is_tensor; });
}

std::string names_of(const std::vector<Slot>& slots) {
  std::string names;
  for (const Slot& slot : slots) names += (names.empty() ? "" : ", ") + slot.name;
  return names;
}

uint32_t SessionState::find(const std::vector<Slot>& slots, std::string_view name, const char* kind) {
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name == name) return i;
  }
  throw Error(BP_NOT_FOUND,
              std::string("the model has no ") + kind + " '" + std::string(name) + "'; it has: " + names_of(slots));
}

std::vector<uint32_t> SessionState::find_outputs(nb::handle names) const {
  std::vector<uint32_t> wanted;
  if (names.is_none()) {
    for (uint32_t i = 0; i < outputs_.size(); ++i) wanted.push_back(i);
  } else {
    for (const std::string& name : strings_of(names, "outputs")) {
      const uint32_t output = find_output(name);
      if (std::find(wanted.begin(), wanted.end(), output) == wanted.end()) wanted.push_back(output);
    }
  }
  return wanted;
}

Lane SessionState::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Lane lane = std::move(idle_.back());
      idle_.pop_back();
      return lane;
    }
  }
  const UnlockedScope unlocked;
  return {session_.exec(), std::vector<bool>(inputs_.size()), false, {}};
}

void SessionState::give_back(Lane lane) {
  static const size_t kMost = std::max(4u, std::thread::hardware_concurrency());
  {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMost) {
      idle_.push_back(std::move(lane));
      return;
    }
  }
  const UnlockedScope unlocked;
  const Lane released = std::move(lane);
}

Binding bind_input(const SessionState& state, Exec& exec, uint32_t input, nb::handle value, bool may_copy,
                   bool may_wait) {
  const Slot& slot = state.inputs()[input];
  Binding binding;
  if (slot.is_tensor) {
    binding.argument = Argument::of(state.env(), value, {slot.label, slot.dtype, false, may_copy});
    const bp_tensor_t tensor = binding.argument->abi();
    const Waiting waiting(may_wait);
    exec.bind_memory(input, tensor);
  } else {
    binding.container = make_container(state.env(), state.graph(), slot.type, value, slot.label);
    client::detail::call(api().exec_bind_container, exec.get(), input, binding.container.get());
  }
  return binding;
}

nb::object read_output(const SessionState& state, const Exec& exec, uint32_t output) {
  const Slot& slot = state.outputs()[output];
  if (slot.is_tensor) return copy_to_numpy(state.env(), exec.output_view(output));
  bp_container_t* container = nullptr;
  client::detail::call(api().exec_output_container, exec.get(), output, &container);
  return read_container(state.env(), state.graph(), slot.type, container);
}

nb::object make_session(std::shared_ptr<SessionState> state) {
  return nb::cast(new PySession{Unlocked<std::shared_ptr<SessionState>>(std::move(state))},
                  nb::rv_policy::take_ownership);
}

void add_session(nb::module_& module) {
  Class<PySession>(module, "Session", nb::is_weak_referenceable(),
                   "A model placed on devices and compiled. Thread-safe: many threads may run one at once.")
      .def_prop_ro(
          "inputs", [](const PySession& self) { return value_infos(view::Graph(self->graph()).inputs()); },
          nb::sig("def inputs(self) -> list[ValueInfo]"))
      .def_prop_ro(
          "outputs", [](const PySession& self) { return value_infos(view::Graph(self->graph()).outputs()); },
          nb::sig("def outputs(self) -> list[ValueInfo]"))
      .def("run", &run, nb::arg("inputs"), nb::arg("outputs").none() = nb::none(), nb::kw_only(),
           nb::arg("timeout").none() = nb::none(), nb::arg("cancel").none() = nb::none(),
           nb::sig("def run(self, inputs: Mapping[str, Value], outputs: str | Sequence[str] | None = None, *, "
                   "timeout: float | None = None, cancel: Cancel | None = None) -> dict[str, Any]"),
           "Runs the model once. The interpreter lock is released while it computes. On the main thread, the exception "
           "of\n"
           "a signal's handler (Ctrl-C) cancels the run.\n\n"
           "Args:\n"
           "    inputs: values by name. Arrays of NumPy, and of any package by DLPack, are read without a copy if\n"
           "        they are C-contiguous; lists and numbers become arrays of the declared type if that keeps their\n"
           "        values. Sequences are lists, optionals None or a value, maps dicts.\n"
           "    outputs: the names of the requested outputs; all by default.\n"
           "    timeout: in seconds.\n\n"
           "Returns:\n"
           "    New arrays by name, in the order of `outputs` or the model's. Strings are arrays of objects;\n"
           "    sequences are lists, maps dicts.\n\n"
           "Raises:\n"
           "    TypeMismatch: data type, rank or extents differ from what the model declares.\n"
           "    NotFound: no input or output of that name.\n"
           "    BadState: an input is missing.\n"
           "    TimedOut, Cancelled, DeviceLost.")
      .def("__call__", &call,  // unnamed, because an input may be named "self"
           nb::sig("def __call__(self, /, *arrays: Value, **named: Value) -> Any"),
           "`run` with inputs in the model's order or by name: returns the output, or a tuple of several.")
      .def(
          "run_async",
          [](nb::handle self, nb::handle inputs, nb::handle outputs, nb::handle timeout) {
            return imported("backplane.aio", "run_session")(self, inputs, outputs, timeout);
          },
          nb::arg("inputs"), nb::arg("outputs").none() = nb::none(), nb::kw_only(),
          nb::arg("timeout").none() = nb::none(),
          nb::sig("def run_async(self, inputs: Mapping[str, Value], outputs: str | Sequence[str] | None = None, *, "
                  "timeout: float | None = None) -> Coroutine[object, object, dict[str, Any]]"),
          "An awaitable `run`. Cancelling the task cancels the run.")
      .def(
          "bind",
          [](const PySession& self, nb::handle inputs, nb::handle outputs) {
            return make_run(*self.state, inputs, outputs);
          },
          nb::arg("inputs").none() = nb::none(), nb::arg("outputs").none() = nb::none(),
          nb::sig("def bind(self, inputs: Mapping[str, Value] | None = None, "
                  "outputs: Mapping[str, Value] | None = None) -> Run"),
          "A Run with memory bound to inputs and outputs, for many runs without a copy or an allocation.")
      .def(
          "explain",
          [](const PySession& self) {
            return imported("backplane.explanation", "Explanation")(self->session().report());
          },
          nb::sig("def explain(self) -> Explanation"), "Which device runs which node, why, and at what expected cost.")
      .def(
          "_take", [](const PySession& self) { return take_run(*self.state); }, nb::sig("def _take(self) -> Run"))
      .def("refit", &refit, nb::arg("weights"), nb::sig("def refit(self, weights: Mapping[str, Value]) -> None"),
           "Replaces weights by name, all of them or none; compile with `refit=True`. Call it from one thread at a\n"
           "time. A run in flight continues, and each of its islands uses the old or the new weights. Later runs use\n"
           "the new ones.\n\n"
           "Raises:\n"
           "    BadState: the session was compiled without `refit`.\n"
           "    NotFound, TypeMismatch: a weight.")
      .def("read_weight", &read_weight, nb::arg("name"), nb::sig("def read_weight(self, name: str) -> NDArray[Any]"),
           "A copy of a weight's current value; compile with `refit=True`. Raises BadState, NotFound.")
      .def("__repr__", &describe_session);
}

}  // namespace backplane::python

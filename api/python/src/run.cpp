// SPDX-License-Identifier: Apache-2.0
// The Python class Run: memory that is bound once for many runs.
#include "run.h"

#include "completion.h"
#include "convert.h"
#include "sync.h"

namespace backplane::python {
namespace {

class PyRun {
 public:
  explicit PyRun(std::shared_ptr<SessionState> state, Exec exec)
      : state_(std::move(state)), exec_(std::make_unique<Unlocked<Exec>>(std::move(exec))) {
    inputs_.resize((*state_)->inputs().size());
    outputs_.resize((*state_)->outputs().size());
  }
  PyRun(PyRun&&) = delete;
  ~PyRun() {
    const Call inside;
    exec_.reset();  // waits for a run in flight, unless its device was abandoned
    if (is_abandoned()) abandon();
    inputs_.clear();
    outputs_.clear();
  }

  void bind(nb::handle inputs, bool may_copy = false) {
    check_views();
    quick_.reset();
    for (const auto& [name, value] : mapping_of(inputs, "inputs")) {
      const uint32_t input = state().find_input(name_of(name));
      Binding binding = bind_input(state(), exec(), input, value, may_copy, stream_ != nullptr);
      replace(inputs_[input], std::move(binding));
    }
  }
  void bind_outputs(nb::handle outputs) {
    check_views();
    for (const auto& [name, value] : mapping_of(outputs, "outputs")) {
      const uint32_t output = state().find_output(name_of(name));
      const Slot& slot = state().outputs()[output];
      if (!slot.is_tensor) {
        const std::string text =
            slot.label + " is " + type_text(state().graph(), slot.type) + ": only memory for tensors can be bound";
        throw nb::type_error(text.c_str());
      }
      Binding binding;
      binding.argument = Argument::of(state().env(), value, {slot.label, slot.dtype, true, false});
      {
        const Waiting waiting(stream_ != nullptr);
        exec().bind_memory(BP_SLOT_OUTPUT + output, binding.argument->abi());
      }
      replace(outputs_[output], std::move(binding));
    }
  }
  void unbind(std::string_view name) {
    check_views();
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      if (state().inputs()[i].name != name) continue;
      unbind_slot(i);
      replace(inputs_[i], {});
      return;
    }
    for (uint32_t i = 0; i < outputs_.size(); ++i) {
      if (state().outputs()[i].name != name) continue;
      unbind_slot(BP_SLOT_OUTPUT + i);
      replace(outputs_[i], {});
      return;
    }
    throw Error(BP_NOT_FOUND, "the model has no input or output '" + std::string(name) +
                                  "'; it has: " + names_of(state().inputs()) + " -> " + names_of(state().outputs()));
  }
  void set_shape(std::string_view name, nb::handle shape) {
    check_views();
    quick_.reset();
    const std::vector<int64_t> extents = extents_of(shape, "the shape of '" + std::string(name) + "'");
    const Waiting waiting(stream_ != nullptr);
    exec().extents(state().find_input(name), extents);
  }
  void set_dim(std::string_view name, nb::handle given) {
    check_views();
    quick_.reset();
    const auto extent = converted<int64_t>(given, "the extent of '" + std::string(name) + "'", "a number of elements");
    const bp_graph_t* graph = state().graph();
    std::string known;
    bool is_known = false;
    for (uint32_t i = 0; i < graph->symbol_count; ++i) {
      const std::string_view each = view::text(bp_graph_symbol(graph, i)->name);
      is_known = is_known || each == name;
      known += (known.empty() ? "" : ", ") + std::string(each);
    }
    if (!is_known)
      throw Error(BP_NOT_FOUND, "the model has no dimension '" + std::string(name) + "'; " +
                                    (known.empty() ? "it names none" : "it has: " + known));
    const Waiting waiting(stream_ != nullptr);
    exec().symbol(name, extent);
  }

  void run(nb::handle timeout, const Cancel* cancel, const PyStream* stream) {
    check_views();
    RunOptions how;
    if (!timeout.is_none()) how.timeout = timeout_of(timeout);
    how.cancel = cancel;
    how.stream = stream == nullptr ? nullptr : &*stream->stream;
    if (stream != nullptr && stream->env->get() != state().env().get())
      throw Error(
          BP_INVALID_ARGUMENT,
          "the stream belongs to another Environment than the session: create it with the session's Environment");
    if (stream != nullptr && (!stream_ || (*stream_)->get() != stream->stream->get()))
      stream_ = std::make_unique<Unlocked<Stream>>(*stream->stream);
    try {
      run_exec(state(), exec(), how, 0, quick_);
    } catch (const Error& error) {
      if (error.abandoned()) abandon();
      throw;
    }
  }
  // Starts a run. Returns a descriptor that becomes readable when the run has ended.
  int submit(nb::handle timeout, const Cancel* cancel) {
    check_views();
    if (!completion_) completion_ = std::make_unique<Completion>();
    if (completion_->is_under_way()) throw Error(BP_BUSY, "this Run has a run under way: await that one first");
    RunOptions how;
    if (!timeout.is_none()) how.timeout = timeout_of(timeout);
    const bp_run_t run = completion_->begin(how, cancel);
    try {
      const UnlockedScope unlocked;
      exec().submit(run);
    } catch (...) {
      completion_->refused();
      throw;
    }
    return completion_->event();
  }
  void finish() {
    if (!completion_ || !completion_->is_under_way()) throw Error(BP_BAD_STATE, "no run is under way: start one first");
    try {
      const UnlockedScope unlocked;
      completion_->finish();
    } catch (const Error& error) {
      if (error.abandoned()) abandon();
      throw;
    }
  }

  nb::object output(nb::handle self, std::string_view name) {
    const uint32_t i = state().find_output(name);
    if (outputs_[i].argument) return outputs_[i].object();
    if (!state().outputs()[i].is_tensor) return read_output(state(), exec(), i);
    const bp_tensor_t tensor = exec().output_view(i);
    auto array = std::make_unique<Array>(
        state().env(), tensor.dtype, std::vector<int64_t>(tensor.extents, tensor.extents + tensor.rank), tensor.buffer);
    array->keep(nb::borrow(self), views_);
    return nb::cast(array.release(), nb::rv_policy::take_ownership);
  }
  nb::object output_shape(std::string_view name) {
    const bp_tensor_t tensor = exec().output_view(state().find_output(name));
    nb::list shape;
    for (uint32_t i = 0; i < tensor.rank; ++i) shape.append(tensor.extents[i]);
    return nb::tuple(shape);
  }
  nb::dict copy_outputs(nb::handle names) {
    nb::dict results;
    for (const uint32_t i : state().find_outputs(names))
      results[state().outputs()[i].name.c_str()] = read_output(state(), exec(), i);
    return results;
  }

  // Returns the exec to the session for other calls. This Run must not be used afterwards.
  void give_back() {
    Lane lane{exec(), std::vector<bool>(inputs_.size(), true), false, {}};
    exec_.reset();
    (*state_)->give_back(std::move(lane));
  }

  // For the garbage collector: bound arrays may refer to this object. Memory that a run may use is not released.
  int traverse(visitproc visit, void* arg) const {
    for (const std::vector<Binding>* bindings : {&inputs_, &outputs_}) {
      for (const Binding& binding : *bindings) {
        if (!binding.argument) continue;
        if (const int result = binding.argument->traverse(visit, arg); result != 0) return result;
      }
    }
    return 0;
  }
  void clear() {
    if (!exec_ || stream_ || (completion_ && completion_->is_under_way())) return;
    for (uint32_t i = 0; i < inputs_.size(); ++i) clear_slot(inputs_[i], i);
    for (uint32_t i = 0; i < outputs_.size(); ++i) clear_slot(outputs_[i], BP_SLOT_OUTPUT + i);
  }

  const SessionState& state() const { return **state_; }
  std::string describe() const {
    std::string text;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool bound = inputs_[i].argument || inputs_[i].container;
      text += (i == 0 ? "" : ", ") + state().inputs()[i].name + (bound ? "" : " (not bound)");
    }
    text += " -> ";
    for (size_t i = 0; i < outputs_.size(); ++i)
      text += (i == 0 ? "" : ", ") + state().outputs()[i].name + (outputs_[i].argument ? " (bound)" : "");
    return "Run(" + text + ")";
  }

 private:
  Exec& exec() { return **exec_; }
  void unbind_slot(uint32_t slot) {
    const Waiting waiting(stream_ != nullptr);
    exec().unbind(slot);
  }
  void clear_slot(Binding& binding, uint32_t slot) {
    if (!binding.argument) return;
    try {
      exec().unbind(slot);
    } catch (const Error&) {
      return;  // the binding is still in use
    }
    const Binding released = std::move(binding);
    binding = {};
  }
  // Throws if arrays still view the outputs' memory. The loader allocated it, and the next run or bind may write or
  // release it.
  void check_views() const {
    if (*views_ == 0) return;
    throw Error(BP_BUSY,
                "an output of the last run is still in use: drop the Array and what was made of it, copy it with "
                ".numpy(copy=True), or bind memory of your own to the output");
  }
  // Whether an abandoned device may still use the bound memory: the device of an awaited run, or that of the last
  // stream, on which a run may not have ended.
  bool is_abandoned() const {
    if (completion_ && completion_->is_abandoned()) return true;
    if (!stream_) return false;
    try {
      (void)(*stream_)->plugin_stream();
    } catch (const Error& error) {
      return error.status() == BP_DEVICE_LOST;
    }
    return false;
  }
  // Replaces a binding that the exec no longer uses. Leaks it if an abandoned device may still use its memory.
  void replace(Binding& binding, Binding with) {
    if (is_abandoned()) (void)new Binding(std::move(binding));
    binding = std::move(with);
  }
  // Leaks the bound memory, because an abandoned device may still write to it.
  void abandon() {
    (void)new std::vector<Binding>(std::move(inputs_));
    (void)new std::vector<Binding>(std::move(outputs_));
    inputs_ = std::vector<Binding>(state().inputs().size());
    outputs_ = std::vector<Binding>(state().outputs().size());
  }

  Unlocked<std::shared_ptr<SessionState>> state_;
  std::vector<Binding> inputs_, outputs_;
  Views views_ = std::make_shared<std::atomic<int>>(0);
  std::optional<uint64_t> quick_;  // see run_exec
  std::unique_ptr<Completion> completion_;
  std::unique_ptr<Unlocked<Stream>> stream_;  // the last one that a run was put into
  std::unique_ptr<Unlocked<Exec>> exec_;      // destroyed first: waits for a run in flight
};

}  // namespace

nb::object make_run(std::shared_ptr<SessionState> state, nb::handle inputs, nb::handle outputs) {
  std::optional<Exec> exec;
  {
    const UnlockedScope unlocked;
    exec.emplace(state->session().exec());
  }
  auto run = std::make_unique<PyRun>(std::move(state), std::move(*exec));
  exec.reset();
  if (!inputs.is_none()) run->bind(inputs);
  if (!outputs.is_none()) run->bind_outputs(outputs);
  return nb::cast(run.release(), nb::rv_policy::take_ownership);
}

nb::object take_run(std::shared_ptr<SessionState> state) {
  Lane lane = state->take();
  for (uint32_t i = 0; i < state->inputs().size(); ++i) {
    if (lane.inputs[i]) lane.exec.unbind(i);
  }
  for (uint32_t i = 0; i < state->outputs().size(); ++i) {
    if (lane.outputs && state->outputs()[i].has_static_shape) lane.exec.unbind(BP_SLOT_OUTPUT + i);
  }
  return nb::cast(new PyRun(std::move(state), std::move(lane.exec)), nb::rv_policy::take_ownership);
}

void add_run(nb::module_& module) {
  const char* run_text =
      "Runs with the bound memory, and returns when the results are available. The interpreter lock is released\n"
      "meanwhile. On the main thread, the exception of a signal's handler (Ctrl-C) cancels the run.\n\n"
      "Args:\n"
      "    timeout: in seconds.\n"
      "    cancel: ends the run when it is set.\n"
      "    stream: put the run into this stream and return at once; the results are available after\n"
      "        `stream.wait()`.\n\n"
      "Raises:\n"
      "    BadState: an input is not bound.\n"
      "    Busy: an output of the last run is still in use.\n"
      "    TimedOut, Cancelled, DeviceLost.";
  const nb::sig run_signature(
      "def run(self, timeout: float | None = None, cancel: Cancel | None = None, stream: Stream | None = None) -> "
      "None");
  const nb::sig call_signature(
      "def __call__(self, timeout: float | None = None, cancel: Cancel | None = None, stream: Stream | None = None) -> "
      "None");
  Class<PyRun>(module, "Run", nb::is_weak_referenceable(), nb::type_slots(Collected<PyRun>::kSlots),
               "A session with memory bound to its inputs and outputs, made by `Session.bind`.\n\n"
               "Memory is used in place and kept alive: write new data into it between runs. The loader allocates\n"
               "outputs that are not bound. Use a Run from one thread at a time.")
      .def(
          "bind", [](PyRun& self, nb::handle inputs) { self.bind(inputs); }, nb::arg("inputs"),
          nb::sig("def bind(self, inputs: Mapping[str, Value]) -> None"),
          "Binds C-contiguous arrays to inputs: NumPy's, other packages' by DLPack, or an Array, on the host or a\n"
          "device. Sequences, optionals, maps and strings are copied.\n\n"
          "Raises:\n"
          "    TypeMismatch: data type, rank or extents.\n"
          "    ValueError: the array is not contiguous.")
      .def("bind_outputs", &PyRun::bind_outputs, nb::arg("outputs"),
           nb::sig("def bind_outputs(self, outputs: Mapping[str, Value]) -> None"),
           "Binds writable C-contiguous arrays that receive outputs.")
      .def("unbind", &PyRun::unbind, nb::arg("name"),
           "Removes the binding of an input or output; the loader then allocates an output itself.")
      .def("set_shape", &PyRun::set_shape, nb::arg("name"), nb::arg("shape"),
           nb::sig("def set_shape(self, name: str, shape: Sequence[int]) -> None"),
           "Sets new extents of a bound input, within the memory that was bound.")
      .def("set_dim", &PyRun::set_dim, nb::arg("name"), nb::arg("extent"),
           nb::sig("def set_dim(self, name: str, extent: int) -> None"),
           "Sets the extent of a named dimension, in every bound input that has it.")
      .def("run", &PyRun::run, nb::arg("timeout").none() = nb::none(), nb::arg("cancel").none() = nb::none(),
           nb::arg("stream").none() = nb::none(), run_signature, run_text)
      .def("__call__", &PyRun::run, nb::arg("timeout").none() = nb::none(), nb::arg("cancel").none() = nb::none(),
           nb::arg("stream").none() = nb::none(), call_signature, "`run`.")
      .def(
          "run_async",
          [](nb::handle self, nb::handle timeout) { return imported("backplane.aio", "run_bound")(self, timeout); },
          nb::arg("timeout").none() = nb::none(),
          nb::sig("def run_async(self, timeout: float | None = None) -> Coroutine[object, object, None]"),
          "An awaitable `run`. Cancelling the task cancels the run; the task ends when the run has ended.")
      .def(
          "output", [](nb::handle self, std::string_view name) { return nb::cast<PyRun&>(self).output(self, name); },
          nb::arg("name"), nb::sig("def output(self, name: str) -> Any"),
          "An output of the last run, without a copy: what is bound to it, otherwise an Array of the loader's memory.\n"
          "While that Array, or what was made of it, is alive, the next run raises Busy. Sequences, optionals\n"
          "and maps are copied.")
      .def("output_shape", &PyRun::output_shape, nb::arg("name"),
           nb::sig("def output_shape(self, name: str) -> tuple[int, ...]"), "The output's extents in the last run.")
      .def("copy_outputs", &PyRun::copy_outputs, nb::arg("names").none() = nb::none(),
           nb::sig("def copy_outputs(self, names: str | Sequence[str] | None = None) -> dict[str, Any]"),
           "New arrays with the outputs of the last run, by name. Raises NotFound if an output does not exist.")
      .def("_submit", &PyRun::submit, nb::arg("timeout").none(), nb::arg("cancel").none())
      .def("_finish", &PyRun::finish)
      .def("_bind_copies", [](PyRun& self, nb::handle inputs) { self.bind(inputs, true); })
      .def("_give_back", &PyRun::give_back)
      .def("__repr__", &PyRun::describe);
}

}  // namespace backplane::python

// SPDX-License-Identifier: Apache-2.0
// A session with its idle execs and the descriptions of its inputs and outputs.
#pragma once

#include <mutex>

#include "argument.h"
#include "container.h"

namespace backplane::python {

// An input or output.
struct Slot {
  std::string name;
  std::string label;  // "input 'x'"
  uint32_t type = 0;  // index in the graph's types
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  bool is_tensor = false;
  bool has_static_shape = false;  // extents are known, and an element has a fixed number of whole bytes
  std::vector<int64_t> extents;   // only if has_static_shape
  uint64_t bytes = 0;
};

// The slots' names: "a, b".
std::string names_of(const std::vector<Slot>& slots);

// An exec, and which slots its last run bound. The bound memory may no longer exist.
struct Lane {
  Exec exec;
  std::vector<bool> inputs;
  bool outputs = false;           // whether the outputs with a static shape were bound
  std::optional<uint64_t> quick;  // see run_exec
};

// A session, with the execs that no call uses. Holds no Python objects. Must be created and destroyed without the
// interpreter lock.
class SessionState {
 public:
  SessionState(Environment env, Model model, Session session);

  const Environment& env() const { return env_; }
  const Session& session() const { return session_; }
  const bp_graph_t* graph() const { return graph_; }
  const std::vector<Slot>& inputs() const { return inputs_; }
  const std::vector<Slot>& outputs() const { return outputs_; }
  // Whether runs with inputs of the same size take about the same time: there is no loop, and all inputs are tensors.
  bool is_steady() const { return is_steady_; }
  // Throw NotFound with a list of the known names.
  uint32_t find_input(std::string_view name) const { return find(inputs_, name, "input"); }
  uint32_t find_output(std::string_view name) const { return find(outputs_, name, "output"); }
  // The outputs that a Python argument requests: a name, a sequence of names, or None for all.
  std::vector<uint32_t> find_outputs(nb::handle names) const;

  // Returns an exec that no other call uses. The caller passes it to `give_back` after a run that succeeded. Blocks
  // only if an exec must be created.
  Lane take();
  // Keeps the exec for later calls, unless as many are idle as there are processors (at least 4). May release the
  // interpreter lock.
  void give_back(Lane lane);

 private:
  static uint32_t find(const std::vector<Slot>& slots, std::string_view name, const char* kind);

  Environment env_;
  Model model_;
  Session session_;
  const bp_graph_t* graph_;
  std::vector<Slot> inputs_, outputs_;
  bool is_steady_ = true;
  std::mutex mutex_;
  std::vector<Lane> idle_;
};

nb::object make_session(std::shared_ptr<SessionState> state);

// The object that is bound to an input or output. It must live until the slot is bound again.
struct Binding {
  std::optional<Argument> argument;
  Container container;
  nb::object object() const { return argument ? argument->object() : nb::object(); }
};
// `may_wait`: the exec may have a run in a stream, which must end first.
Binding bind_input(const SessionState& state, Exec& exec, uint32_t input, nb::handle value, bool may_copy,
                   bool may_wait = false);

// Returns a copy of an output of the last run.
nb::object read_output(const SessionState& state, const Exec& exec, uint32_t output);

}  // namespace backplane::python

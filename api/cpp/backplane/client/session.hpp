// SPDX-License-Identifier: Apache-2.0
// A compiled model and its runs.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backplane/client/model.hpp"
#include "backplane/client/sync.hpp"
#include "backplane/tensor.hpp"

namespace backplane {
inline namespace client {

// Limits, ordering and priority of a run.
struct RunOptions {
  std::chrono::nanoseconds timeout{0};  // from the call of `run`; 0: none
  const Cancel* cancel = nullptr;
  const Stream* stream = nullptr;  // if set, `run` enqueues the run in this stream and returns
  std::vector<bp_point_t> waits;
  std::vector<bp_point_t> signals;
  int32_t priority = 0;
  uint64_t trace_id = 0;
};

// A session's state for one run at a time. Use an Exec from one thread at a time; create one for each thread.
class Exec {
 public:
  // Binds a tensor to an input and shares its memory until the input is bound again or unbound. Write new data into
  // that memory between runs.
  void bind(uint32_t input, const Tensor& tensor) { bind_slot(input, tensor); }
  // Binds any memory to input `slot`, or to output `slot - BP_SLOT_OUTPUT`. The caller keeps the memory alive.
  void bind_memory(uint32_t slot, const bp_tensor_t& tensor) {
    detail::call(api().exec_bind, get(), slot, &tensor);
    bound_.erase(slot);
  }
  void bind(std::string_view input, const Tensor& tensor) { bind_slot(find_input(input), tensor); }
  // The loader allocates outputs that are not bound.
  void bind_output(uint32_t output, const Tensor& tensor) {
    // Clamped, because a sum that wraps around would be the slot of an input.
    bind_slot(BP_SLOT_OUTPUT + std::min(output, UINT32_MAX - BP_SLOT_OUTPUT), tensor);
  }
  void bind_output(std::string_view output, const Tensor& tensor) {
    bind_slot(BP_SLOT_OUTPUT + find_output(output), tensor);
  }
  // Sets new extents of a bound input. They must fit into the bound memory.
  void extents(uint32_t input, const std::vector<int64_t>& extents) {
    const bp_slot_extents_t slot{input, static_cast<uint32_t>(extents.size()), extents.data()};
    detail::call(api().exec_extents, get(), &slot, 1u, static_cast<uint32_t>(sizeof slot));
  }
  // Sets the extent of a named dimension in every bound input that has it.
  void symbol(std::string_view name, int64_t extent) {
    detail::call(api().exec_symbol, get(), find_symbol(name), extent);
  }
  // Sets the extents of many dimensions at once. Only the resulting shapes must fit into the bound memory.
  void symbols(const std::map<std::string, int64_t>& extents) {
    std::vector<bp_symbol_extent_t> found;
    for (const auto& [name, extent] : extents) found.push_back({find_symbol(name), 0, extent});
    detail::call(api().exec_symbols, get(), found.data(), static_cast<uint32_t>(found.size()),
                 static_cast<uint32_t>(sizeof(bp_symbol_extent_t)));
  }
  // Makes the loader stop using the memory that is bound to `slot`. If that is an output, the loader allocates it
  // itself.
  void unbind(uint32_t slot) {
    detail::call(api().exec_unbind, get(), slot);
    bound_.erase(slot);
  }

  // Runs and returns when the run has ended. With `options.stream`, returns when the run is enqueued. If the run is
  // abandoned (Error::abandoned), the bound tensors are kept until the process ends, because the device may still use
  // them. If the device of an enqueued run is abandoned, the caller must keep them.
  void run(const RunOptions& options = {}) {
    bp_run_t run{};
    run.size = sizeof run;
    run.waits = options.waits.data();
    run.wait_count = static_cast<uint32_t>(options.waits.size());
    run.signals = options.signals.data();
    run.signal_count = static_cast<uint32_t>(options.signals.size());
    if (options.timeout.count() > 0) {
      const auto end = std::chrono::steady_clock::now().time_since_epoch() + options.timeout;
      run.deadline = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(end).count());
    }
    run.cancel = options.cancel == nullptr ? nullptr : options.cancel->get();
    run.stream = options.stream == nullptr ? nullptr : options.stream->get();
    run.priority = options.priority;
    run.trace_id = options.trace_id;
    try {
      detail::call(api().exec_run, get(), static_cast<const bp_run_t*>(&run));
    } catch (const Error& error) {
      if (error.abandoned()) keep_bound();
      throw;
    }
  }
  // Starts a run and returns, as bp_exec_submit does. `run` and its arrays are copied. The cancel token and semaphores
  // must live until the signals advance. If the device of the run is abandoned, the caller must keep the bound tensors.
  void submit(const bp_run_t& run) { detail::call(api().exec_submit, get(), &run); }

  // Returns an output of the last run without copying it. Valid until the next run, bind or unbind.
  bp_tensor_t output_view(uint32_t output) const {
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    detail::call(api().exec_output, get(), output, &tensor);
    return tensor;
  }
  // Returns a copy of an output in host memory.
  Tensor output(uint32_t output) const {
    const bp_tensor_t from = output_view(output);
    if (from.buffer.memory == nullptr || from.buffer.bytes == 0) return Tensor::copy(from);
    std::vector<char> staging(from.buffer.bytes);
    bp_tensor_t host = from;
    host.buffer = bp_buffer_t{0, 0, 0, nullptr, staging.data(), 0, from.buffer.bytes, 0};
    const bp_copy_t copy{sizeof copy, 0, &from.buffer, &host.buffer, from.buffer.bytes, nullptr};
    detail::call(api().memory_copy, env_.get(), &copy);
    return Tensor::copy(host);
  }
  Tensor output(std::string_view name) const { return output(find_output(name)); }

  bp_exec_t* get() const { return exec_.get(); }

 private:
  friend class Session;
  Exec(std::shared_ptr<bp_env_t> env, Model model, std::shared_ptr<bp_session_t> session)
      : env_(std::move(env)), model_(std::move(model)), session_(std::move(session)) {
    bp_exec_t* exec = nullptr;
    detail::call(api().exec_create, session_.get(), static_cast<const bp_exec_desc_t*>(nullptr), &exec);
    exec_ = std::shared_ptr<bp_exec_t>(exec, api().exec_destroy);
  }
  void bind_slot(uint32_t slot, const Tensor& tensor) {
    const bp_tensor_t raw = tensor.abi();
    detail::call(api().exec_bind, get(), slot, &raw);
    bound_[slot] = tensor;
  }
  void keep_bound() const {
    static std::mutex& mutex = *new std::mutex;
    static auto& kept = *new std::vector<std::map<uint32_t, Tensor>>;
    const std::lock_guard lock(mutex);
    kept.push_back(bound_);
  }
  uint32_t find_input(std::string_view name) const { return found(model_.graph().find_input(name), "input", name); }
  uint32_t find_output(std::string_view name) const { return found(model_.graph().find_output(name), "output", name); }
  uint32_t find_symbol(std::string_view name) const {
    const bp_graph_t* graph = model_.graph().raw();
    for (uint32_t i = 0; i < graph->symbol_count; ++i) {
      if (view::text(bp_graph_symbol(graph, i)->name) == name) return i;
    }
    std::string known;
    for (uint32_t i = 0; i < graph->symbol_count; ++i)
      known.append(i == 0 ? "" : ", ").append(view::text(bp_graph_symbol(graph, i)->name));
    throw Error(BP_NOT_FOUND, "the model has no dimension named '" + std::string(name) + "'; " +
                                  (known.empty() ? "it names none" : "it has: " + known));
  }
  static uint32_t found(uint32_t index, const char* kind, std::string_view name) {
    if (index != BP_NONE) return index;
    throw Error(BP_NOT_FOUND, std::string("the model has no ") + kind + " '" + std::string(name) +
                                  "'; see Model::graph() for its names");
  }

  std::shared_ptr<bp_env_t> env_;
  Model model_;
  std::map<uint32_t, Tensor> bound_;
  std::shared_ptr<bp_session_t> session_;
  std::shared_ptr<bp_exec_t> exec_;  // members are destroyed in reverse order: this one first
};

struct SessionOptions {
  std::map<std::string, std::pair<int64_t, int64_t>> symbols;  // minimum and maximum extent of named dimensions
  std::vector<std::string> devices;                            // preferred first; empty: all
  uint32_t fallback = BP_FALLBACK_ALLOW;
  uint32_t compute_types = 0;  // BP_COMPUTE_* that are allowed in addition to each node's own type
  // "op=Conv" → "cpu". Of those that match a node, the first in alphabetical order counts.
  std::map<std::string, std::string> pins;
  std::map<std::string, std::string> options;  // "cpu.threads" → "4"
  uint32_t max_islands = 0;
  uint32_t flags = 0;  // BP_SESSION_*
  const Cancel* cancel = nullptr;
};

// A model placed on devices and compiled. Many threads may use one session.
class Session {
 public:
  Exec exec() const { return Exec(env_, model_, session_); }
  const Model& model() const { return model_; }
  // The placement of node `i` of the model's graph.
  bp_placed_node_t node(uint32_t i) const {
    bp_placed_node_t placed{};
    placed.size = sizeof placed;
    detail::call(api().session_node, static_cast<const bp_session_t*>(get()), i, &placed);
    return placed;
  }
  // The plugin's own handle of an island's program (bp_placed_node_t.island), for extension functions.
  const bp_program_t* plugin_program(uint32_t island) const {
    const bp_program_t* program = nullptr;
    detail::call(api().session_plugin_program, static_cast<const bp_session_t*>(get()), island, &program);
    return program;
  }
  // The JSON output of `backplane explain --json`.
  std::string report() const { return detail::collect(api().session_report, get()); }
  // Replaces a weight. The session must have been created with BP_SESSION_REFIT.
  void refit(std::string_view weight, const Tensor& tensor) const { refit({{weight, tensor}}); }
  // Replaces all of `weights` (names and new content), or none of them if it throws.
  void refit(const std::vector<std::pair<std::string_view, Tensor>>& weights) const {
    std::vector<bp_tensor_t> tensors;
    std::vector<bp_named_tensor_t> named;
    for (const auto& weight : weights) tensors.push_back(weight.second.abi());
    for (size_t i = 0; i < weights.size(); ++i) named.push_back({view::text(weights[i].first), &tensors[i]});
    bp_session_refit_t what{};
    what.size = sizeof what;
    what.count = static_cast<uint32_t>(named.size());
    what.weights = named.data();
    what.stride = sizeof(bp_named_tensor_t);
    detail::call(api().session_refit, get(), static_cast<const bp_session_refit_t*>(&what));
  }
  // The verdict of a device (bp_device_info_t.id) on a node. The verdict's texts live as long as the session.
  bp_node_verdict_t verdict(uint32_t node, uint64_t device) const {
    bp_node_verdict_t verdict{};
    verdict.size = sizeof verdict;
    detail::call(api().session_verdict, static_cast<const bp_session_t*>(get()), node, device, &verdict);
    return verdict;
  }
  // Reads a weight into `tensor`, which must have the weight's type and extents. Requires BP_SESSION_REFIT too.
  void read_weight(std::string_view weight, Tensor& tensor) const {
    bp_tensor_t raw = tensor.abi();
    detail::call(api().session_read_weight, static_cast<const bp_session_t*>(get()), view::text(weight), &raw);
  }
  bp_session_t* get() const { return session_.get(); }

 private:
  friend class Environment;
  Session(std::shared_ptr<bp_env_t> env, Model model, bp_session_t* session)
      : env_(std::move(env)), model_(std::move(model)), session_(session, api().session_destroy) {}

  std::shared_ptr<bp_env_t> env_;
  Model model_;
  std::shared_ptr<bp_session_t> session_;  // members are destroyed in reverse order: this one first
};

}  // namespace client
}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Kernels that are not planned, for nodes with string or container operands and for nodes that run subgraphs.
#pragma once

#include "backplane/sdk/host.hpp"
#include "runtime/value.h"
#include "runtime/watch.h"

namespace backplane::cpu {

// The parameters of a run from its caller: host, cancellation, deadline, trace, and context for planning during the
// run.
struct RunContext {
  const sdk::Host* host = nullptr;
  const bp_cancel_t* cancel = nullptr;
  uint64_t deadline = 0;  // as bp_run_t.deadline; 0: none
  uint64_t trace_id = 0;
  PlanContext plan = {};

  bool watched() const { return cancel != nullptr || deadline != 0; }
  // Throws sdk::Error if the run was cancelled or its deadline has passed.
  void check() const;
  // `begin_span` returns a start time in nanoseconds, or 0 if nothing is traced. `end_span` records the span, or
  // nothing if `begin` is 0.
  uint64_t begin_span() const;
  void end_span(uint64_t begin, const bp_node_t& node) const;
};

// Stops a run that was cancelled or whose deadline has passed.
class RunWatch final : public Watch {
 public:
  explicit RunWatch(const RunContext& context) : context_(context) {}
  void check() const override { context_.check(); }

 private:
  const RunContext& context_;
};

class ValueKernel : public Kernel {
 public:
  Plan plan(const PlanContext&, std::span<const Tensor>) const final { return deferred(); }
  // `inputs`: the node's inputs, then the values that its subgraphs capture. They may be moved from. Sets all
  // requested outputs. Returns an error message, or nullopt on success; errors in subgraphs are thrown. Thread-safe.
  virtual std::optional<std::string> run(std::span<Value> inputs, std::span<Value> outputs,
                                         const RunContext& context) const = 0;
};

// A ValueKernel that calls a lambda: run(inputs, outputs) or run(inputs, outputs, context).
template <class Run>
class ValueFunction final : public ValueKernel {
 public:
  explicit ValueFunction(Run run) : run_(std::move(run)) {}
  std::optional<std::string> run(std::span<Value> inputs, std::span<Value> outputs,
                                 const RunContext& context) const override {
    if constexpr (std::is_invocable_v<const Run&, std::span<Value>, std::span<Value>>)
      return run_(inputs, outputs);
    else
      return run_(inputs, outputs, context);
  }

 private:
  Run run_;
};

template <class Run>
std::unique_ptr<Kernel> make_value_kernel(Run run) {
  return std::make_unique<ValueFunction<Run>>(std::move(run));
}

}  // namespace backplane::cpu

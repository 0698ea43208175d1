// SPDX-License-Identifier: Apache-2.0
// A subgraph of a node (a branch, or the body of a loop), compiled as its own program.
#pragma once

#include "runtime/executor.h"

namespace backplane::cpu {

class Body {
 public:
  // `parent`, the program of the node's graph, must outlive the body. Throws sdk::Error.
  Body(const Program& parent, const bp_compile_t& what, const bp_graph_t& graph) : program_(parent, what, graph) {}

  const Program& program() const { return program_; }
  uint32_t input_count() const { return program_.graph().input_count; }
  uint32_t output_count() const { return program_.graph().output_count; }
  // Returns the indices of the outer graph's values that the body reads, except those that are known at compile time.
  std::span<const uint32_t> captures() const { return program_.captures(); }

  // One caller's use of the body. It takes an idle executor of the body, or creates one. Its destructor returns the
  // executor, with its memory, to the body for later uses.
  class Use {
   public:
    // `captured`: the values of `captures()`, in the same order.
    Use(const Body& body, std::span<const Value> captured);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    // Moves from `inputs`. Sets `outputs`, whose memory outlives this use. Throws sdk::Error.
    void run(std::span<Value> inputs, std::span<Value> outputs, const RunContext& context);

   private:
    const Body& body_;
    std::unique_ptr<Executor> executor_;
  };

 private:
  Program program_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Executor>> executors_;  // executors that are not in use
};

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// Which of a graph's inputs the framework bound to the memory of an output.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "run/run_graph.h"
#include "run/run_state.h"

namespace backplane {

uint64_t begin_of(const bp_buffer_t& buffer);
uint64_t end_of(const bp_buffer_t& buffer);

// Keeps the bound memory sorted, because a model may have very many inputs and outputs.
class BoundInputs {
 public:
  // The inputs that are bound in `state`. Both arguments must outlive this object, and bindings must not change.
  BoundInputs(const RunGraph& graph, const RunState& state);

  // The inputs whose container is that of the output, or whose memory overlaps that of the output, ascending.
  std::vector<uint32_t> sharing_with(uint32_t output) const;

 private:
  struct Span {
    const bp_memory_t* memory = nullptr;
    uint64_t begin = 0, end = 0;
    uint32_t input = 0;
    uint64_t last_end = 0;  // the highest end of this span and those before it in the same memory
  };
  // The memory that is bound to a value; empty if there is none.
  Span span_of(uint32_t value) const;

  const RunGraph& graph_;
  const RunState& state_;
  std::vector<Span> spans_;  // by memory and begin
  std::unordered_multimap<const bp_container_t*, uint32_t> containers_;
};

}  // namespace backplane

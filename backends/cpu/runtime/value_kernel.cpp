// SPDX-License-Identifier: Apache-2.0
#include "runtime/value_kernel.h"

#include <chrono>

namespace backplane::cpu {

namespace {

uint64_t now() {
  using namespace std::chrono;
  return static_cast<uint64_t>(duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

}  // namespace

void RunContext::check() const {
  host->check(cancel, deadline);
}

uint64_t RunContext::begin_span() const {
  return host->tracing() ? now() : 0;
}

void RunContext::end_span(uint64_t begin, const bp_node_t& node) const {
  if (begin == 0) return;
  bp_span_t span{};
  span.kind = BP_SPAN_COMPUTE;
  span.begin = begin;
  span.end = now();
  span.trace_id = trace_id;
  span.nodes = &node.id;
  span.node_count = 1;
  span.name = node.op_type;
  host->trace(span);
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
#include "run/bound_inputs.h"

#include <algorithm>
#include <functional>

namespace backplane {

uint64_t begin_of(const bp_buffer_t& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.address) + buffer.offset;
}
uint64_t end_of(const bp_buffer_t& buffer) {
  return begin_of(buffer) + buffer.bytes;
}

BoundInputs::Span BoundInputs::span_of(uint32_t value) const {
  if (!state_.is_bound(value)) return {};
  const bp_buffer_t& buffer = state_.value(value).replicas[graph_.values[value].user_replica].buffer;
  return {buffer.memory, begin_of(buffer), end_of(buffer), value, 0};
}

BoundInputs::BoundInputs(const RunGraph& graph, const RunState& state) : graph_(graph), state_(state) {
  for (uint32_t input : graph.inputs) {
    if (state.value(input).container) {
      containers_.emplace(state.value(input).container, input);
      continue;
    }
    const Span span = span_of(input);
    if (span.begin < span.end) spans_.push_back(span);
  }
  std::ranges::sort(spans_, [](const Span& a, const Span& b) {
    return a.memory != b.memory ? std::less<>()(a.memory, b.memory) : a.begin < b.begin;
  });
  for (size_t i = 0; i < spans_.size(); ++i) {
    const bool is_first = i == 0 || spans_[i - 1].memory != spans_[i].memory;
    spans_[i].last_end = is_first ? spans_[i].end : std::max(spans_[i].end, spans_[i - 1].last_end);
  }
}

std::vector<uint32_t> BoundInputs::sharing_with(uint32_t output) const {
  std::vector<uint32_t> inputs;
  if (const bp_container_t* const container = state_.value(output).container) {
    const auto [first, last] = containers_.equal_range(container);
    for (auto same = first; same != last; ++same) inputs.push_back(same->second);
  } else if (const Span written = span_of(output); written.begin < written.end) {
    // The spans from here on are of later memories, or begin after the end of this one.
    auto span = std::ranges::partition_point(spans_, [&](const Span& one) {
      return one.memory != written.memory ? std::less<>()(one.memory, written.memory) : one.begin < written.end;
    });
    while (span != spans_.begin()) {
      --span;
      if (span->memory != written.memory || span->last_end <= written.begin) break;
      if (span->end > written.begin) inputs.push_back(span->input);
    }
  }
  std::ranges::sort(inputs);
  return inputs;
}

}  // namespace backplane

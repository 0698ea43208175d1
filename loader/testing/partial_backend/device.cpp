// SPDX-License-Identifier: Apache-2.0
#include "partial_backend/device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "backplane/sdk/async.hpp"

namespace backplane::partial {

const bp_plugin_t* cpu = nullptr;

bool Translated::is_same(const bp_node_t& node) {
  return std::string_view(node.domain.data, node.domain.size) == "org.backplane.test" &&
         std::string_view(node.op_type.data, node.op_type.size) == "Same" && node.input_count == 1 &&
         node.output_count == 1;
}

Translated::Translated(const bp_graph_t& original) : original_(original) {
  bool any = false;
  for (uint32_t i = 0; i < original.node_count && !any; ++i) any = is_same(*bp_graph_node(&original, i));
  if (!any) return;
  for (uint32_t i = 0; i < original.node_count; ++i) {
    bp_node_t node = sdk::element(original.nodes, i, original.node_stride);
    if (is_same(node)) {
      node.domain = {"", 0};
      node.op_type = {"Identity", 8};
      node.since_version = 1;
    }
    nodes_.push_back(node);
  }
  std::memcpy(static_cast<void*>(&graph_), &original, std::min<size_t>(original.size, sizeof graph_));
  graph_.nodes = nodes_.data();
  graph_.node_stride = sizeof(bp_node_t);
}

void take_time(uint64_t microseconds) {
  if (microseconds != 0) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

void wait_for_test(const Counters& counters) {
  for (int i = 0; i < 60'000 && !counters.let_go; ++i) take_time(1000);
}

Span::Span(const Device& device, uint32_t kind, std::string_view name)
    : device_(device),
      kind_(kind),
      name_(name),
      begin_(device.backend->sdk_host->tracing() ? sdk::monotonic_now() : 0) {}

Span::~Span() {
  if (begin_ == 0) return;
  bp_span_t span{};
  span.kind = kind_;
  span.begin = begin_;
  span.end = sdk::monotonic_now();
  span.device = device_.id;
  span.name = sdk::text(name_);
  device_.backend->sdk_host->trace(span);
}

}  // namespace backplane::partial

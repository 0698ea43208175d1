// SPDX-License-Identifier: Apache-2.0
#include "place/place.h"

#include <algorithm>
#include <optional>

#include "place/cut.h"

namespace backplane {
namespace {

bool pin_matches(std::string_view pattern, const model::Node& node) {
  if (pattern.starts_with("op=")) return glob(pattern.substr(3), node.op_type);
  if (pattern.starts_with("name=")) pattern.remove_prefix(5);
  return glob(pattern, node.name);
}

// "cpu: dtype: …; opencl: operator: …": each device's reason against a node.
std::string refusals(const std::vector<DeviceCoverage>& coverage, uint32_t node) {
  std::string text;
  for (const DeviceCoverage& device : coverage) {
    const NodeVerdict& verdict = device.nodes[node];
    if (verdict.usable()) continue;
    if (!text.empty()) text += "; ";
    text += device.device->name() + " (" + std::string(reason_name(verdict.reason)) + "): " + verdict.detail;
  }
  return text.empty() ? "no device was asked" : text;
}

Status nobody_takes(const model::Node& node, uint32_t index, const std::vector<DeviceCoverage>& coverage) {
  return Status(BP_UNSUPPORTED, node.label() + " is taken by no device: " + refusals(coverage, index)).with_node(node.id);
}

// The device that a pin names for a node, if one does. The first pin that matches counts.
Result<std::optional<uint32_t>> pinned(const model::Node& node, uint32_t index, const std::vector<DeviceCoverage>& coverage,
                                       const Policy& policy, std::string& pattern) {
  for (const Policy::Pin& pin : policy.pins) {
    if (!pin_matches(pin.pattern, node)) continue;
    const auto named = std::ranges::find_if(coverage, [&](const DeviceCoverage& c) {
      return c.device->name() == pin.device || c.device->name() + ":0" == pin.device;
    });
    if (named == coverage.end())
      return Status(BP_NOT_FOUND, "pin '" + pin.pattern + "': device '" + pin.device + "' is not among the session's devices");
    const NodeVerdict& verdict = named->nodes[index];
    if (!verdict.usable())
      return Status(BP_UNSUPPORTED, "pin '" + pin.pattern + "' puts " + node.label() + " on " + pin.device +
                                        ", which refuses it (" + std::string(reason_name(verdict.reason)) + "): " + verdict.detail)
          .with_node(node.id);
    pattern = pin.pattern;
    return std::optional<uint32_t>(static_cast<uint32_t>(named - coverage.begin()));
  }
  return std::optional<uint32_t>();
}

}  // namespace

Result<Placement> place(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage, const Policy& policy,
                        const std::vector<uint32_t>& parts) {
  Placement placement;
  const uint32_t count = static_cast<uint32_t>(graph.nodes.size());
  placement.device.resize(count);
  placement.pin.resize(count);
  placement.part = parts.empty() ? std::vector<uint32_t>(count, 0) : parts;
  const size_t allowed = policy.fallback == BP_FALLBACK_FORBID ? std::min<size_t>(1, coverage.size()) : coverage.size();
  for (uint32_t i = 0; i < count; ++i) {
    const model::Node& node = graph.nodes[i];
    BP_ASSIGN(const std::optional<uint32_t> pin, pinned(node, i, coverage, policy, placement.pin[i]));
    std::optional<uint32_t> chosen = pin;
    for (uint32_t d = 0; !chosen && d < allowed; ++d)
      if (coverage[d].nodes[i].usable()) chosen = d;
    if (!chosen) return nobody_takes(node, i, coverage);
    placement.device[i] = *chosen;
  }
  cut(graph, placement);
  if (policy.max_islands && placement.islands.size() > policy.max_islands)
    return Status(BP_UNSUPPORTED, "the placement needs " + std::to_string(placement.islands.size()) +
                                      " islands and the session allows " + std::to_string(policy.max_islands) +
                                      ": raise max_islands or list fewer devices");
  return placement;
}

}  // namespace backplane

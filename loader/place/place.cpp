// SPDX-License-Identifier: Apache-2.0
#include "place/place.h"

#include <algorithm>
#include <optional>

#include "place/cut.h"
#include "place/glob.h"
#include "place/limits.h"
#include "place/search.h"

namespace backplane {
namespace {

bool names(std::string_view pattern, const model::Node& node) {
  if (pattern.starts_with("op=")) return glob(pattern.substr(3), node.op_type);
  if (pattern.starts_with("name=")) pattern.remove_prefix(5);
  return glob(pattern, node.name);
}

// A pin on a function call applies to all nodes of the function's body.
bool pin_matches(std::string_view pattern, const model::Graph& graph, const model::Node& node) {
  if (names(pattern, node)) return true;
  for (uint32_t c = node.call; c != BP_NONE; c = graph.calls[c].caller)
    if (names(pattern, graph.calls[c].node)) return true;
  return false;
}

// The devices on which the policy allows a node.
struct Choice {
  uint32_t only = BP_NONE;  // index in the coverage list; BP_NONE: any device
  std::string_view pin;     // the pattern that pins the node to `only`; empty: `only` follows from BP_FALLBACK_FORBID

  bool allows(size_t device) const { return only == BP_NONE || only == device; }
};

// Lists each device's reason for not running a node: "cpu (dtype): …; opencl (operator): …".
std::string refusals(const std::vector<DeviceCoverage>& coverage, uint32_t node, const Choice& choice) {
  std::string text;
  for (size_t d = 0; d < coverage.size(); ++d) {
    const NodeVerdict& verdict = coverage[d].nodes[node];
    if (d > 0) text += "; ";
    text += coverage[d].device->name();
    if (!verdict.usable())
      text += " (" + std::string(reason_name(verdict.reason)) + "): " + verdict.detail;
    else if (choice.allows(d))
      text += " (group): only in a group that cannot be placed on it as a whole";
    else if (choice.pin.empty())
      text += " (policy): the session forbids devices other than '" + coverage[choice.only].device->name() + "'";
    else
      text += " (policy): pin '" + std::string(choice.pin) + "' puts the node on '" +
              coverage[choice.only].device->name() + "'";
  }
  return text.empty() ? "the session has no devices" : text;
}

Status unsupported_node(const model::Node& node, uint32_t index, const std::vector<DeviceCoverage>& coverage,
                        const Choice& choice) {
  const std::string_view which = choice.only == BP_NONE ? "no device" : "no device that the session allows for it";
  return Status(BP_UNSUPPORTED,
                node.label() + " is supported by " + std::string(which) + ": " + refusals(coverage, index, choice))
      .with_node(node.id);
}

std::string names_of(const std::vector<DeviceCoverage>& coverage) {
  std::string names;
  for (const DeviceCoverage& one : coverage) names += (names.empty() ? "" : ", ") + one.device->name();
  return names;
}

// Returns the device of the first pin that matches the node; nullopt if none matches.
Result<std::optional<uint32_t>> pinned(const model::Graph& graph, uint32_t index,
                                       const std::vector<DeviceCoverage>& coverage, const Policy& policy,
                                       std::string& pattern) {
  const model::Node& node = graph.nodes[index];
  for (const Policy::Pin& pin : policy.pins) {
    if (!pin_matches(pin.pattern, graph, node)) continue;
    const auto named =
        std::ranges::find_if(coverage, [&](const DeviceCoverage& c) { return c.device->is_named(pin.device); });
    if (named == coverage.end() && !pin.lost.ok()) return Status(pin.lost).context("pin '" + pin.pattern + "'");
    if (named == coverage.end())
      return Status(BP_NOT_FOUND, "pin '" + pin.pattern + "': device '" + pin.device +
                                      "' is not among the session's devices: " + names_of(coverage));
    const NodeVerdict& verdict = named->nodes[index];
    if (!verdict.usable())
      return Status(BP_UNSUPPORTED, "pin '" + pin.pattern + "' puts " + node.label() + " on " + pin.device +
                                        ", which does not support it (" + std::string(reason_name(verdict.reason)) +
                                        "): " + verdict.detail)
          .with_node(node.id);
    pattern = pin.pattern;
    return std::optional<uint32_t>(static_cast<uint32_t>(named - coverage.begin()));
  }
  return std::optional<uint32_t>();
}

// Returns an error for the first node without a device. `only` and `pins` are those of Choice, by node.
Status covered(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage, const Solution& found,
               const std::vector<uint32_t>& only, const std::vector<std::string>& pins) {
  for (uint32_t i = 0; i < found.assignment.size(); ++i)
    if (found.assignment[i] == BP_NONE) return unsupported_node(graph.nodes[i], i, coverage, {only[i], pins[i]});
  return {};
}

Status few_enough(const Policy& policy, const Solution& found) {
  if (policy.max_islands && found.cost.islands > policy.max_islands)
    return Status(BP_UNSUPPORTED, "the placement needs " + std::to_string(found.cost.islands) +
                                      " islands and the session allows " + std::to_string(policy.max_islands) +
                                      ": raise max_islands or list fewer devices");
  return {};
}

// Places each node on the first device that supports it.
Solution greedy(Problem& problem, uint32_t max_islands) {
  for (;;) {
    Assignment assignment = first_that_can(problem);
    if (std::ranges::find(assignment, BP_NONE) != assignment.end()) return {std::move(assignment), {}, {}};
    if (break_cycles(problem, assignment)) continue;
    Solution found = evaluate(problem, std::move(assignment));
    return max_islands ? reduce(problem, std::move(found), max_islands) : found;
  }
}

}  // namespace

Result<Placement> place(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage, const Policy& policy,
                        const PlaceLimits& limits) try {
  constexpr std::string_view kDoing = "placing the model's nodes";
  Placement placement;
  const uint32_t count = static_cast<uint32_t>(graph.nodes.size());
  placement.pin.resize(count);
  std::vector<uint32_t> only(count, policy.fallback == BP_FALLBACK_FORBID ? 0 : BP_NONE);
  for (uint32_t i = 0; i < count; ++i) {
    BP_ASSIGN(const std::optional<uint32_t> pin, pinned(graph, i, coverage, policy, placement.pin[i]));
    if (pin) only[i] = *pin;
  }
  const uint64_t bytes = uint64_t{count} * coverage.size() * 2 * sizeof(double);  // the costs, and a copy of them
  if (limits.budget) limits.budget->charge(bytes, kDoing);
  Problem problem = make_problem(graph, coverage, only);
  problem.before_step = [&] {
    if (limits.budget) limits.budget->look(kDoing);
    if (limits.cancelled && limits.cancelled())
      throw Budget::Exhausted{{BP_CANCELLED, "cancelled while nodes were being placed"}};
  };
  placement.seconds = problem.seconds;
  const MemoryLimits memory(graph, coverage);
  Solution found;
  for (bool held = false; !held;) {
    found = policy.fallback == BP_FALLBACK_ALLOW ? search(problem, policy.max_islands)
                                                 : greedy(problem, policy.max_islands);
    BP_TRY(covered(graph, coverage, found, only, placement.pin));
    BP_ASSIGN(held, memory.hold(problem, found.assignment, placement.no_room));
  }
  std::ranges::sort(placement.no_room);
  if (policy.max_island_nodes) limit_islands(problem, policy.max_island_nodes, found);
  BP_TRY(few_enough(policy, found));
  cut(graph, problem, found, placement);
  placement.missed_speedups = find_missed_speedups(problem, found);
  placement.cost = found.cost;
  placement.device = std::move(found.assignment);
  placement.island = std::move(found.order.island);
  if (limits.budget) limits.budget->release(bytes);  // place() may be called again, and then charges its own costs
  return placement;
} catch (Budget::Exhausted& stop) {
  return std::move(stop.status);
}

}  // namespace backplane

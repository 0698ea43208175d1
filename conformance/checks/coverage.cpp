// SPDX-License-Identifier: Apache-2.0
// Cases of the group coverage: claimed nodes must be accepted, compiled and run. Refused nodes must not compile, except
// those refused because of cost or policy.
#include <set>

#include "checks/remote.h"

namespace backplane::conform {
namespace {

// Compares what the device claims about the graph with what it does. Returns the first contradiction, or an empty
// string.
std::string dishonesty(RemoteDevice& device, const GraphSpec& spec, const std::vector<onnx::Tensor>& inputs,
                       bool& out_ran) {
  std::vector<Claim> claims, again;
  if (const Answer answer = device.coverage(spec, claims); !answer.ok()) return answer.describe();
  if (const Answer answer = device.coverage(spec, again); !answer.ok()) return answer.describe();
  if (claims != again) return "a second coverage query returns different verdicts";
  const Claim& claim = claims.at(0);
  if (claim.verdicts > 1) return fmt::format("{} verdicts for one node: at most 1 is allowed", claim.verdicts);
  if (claim.answer > BP_ANSWER_CONDITIONAL)
    return fmt::format("the verdict's answer is {}, not a BP_ANSWER_* value", claim.answer);
  const Answer compiled = device.compile(spec);
  if (claim.answer == BP_ANSWER_NO) {
    if (claim.reason == BP_REASON_NONE || claim.reason > BP_REASON_OTHER) {
      return fmt::format("the node is refused with the invalid reason {}", claim.reason);
    }
    if (claim.verdicts == 1 && claim.detail.empty()) return "the node is refused without an explanation";
    const bool unwilling = claim.reason == BP_REASON_COST || claim.reason == BP_REASON_POLICY;
    return compiled.ok() && !unwilling ? "the node is refused, but compiles" : "";
  }
  if (claim.compute_types != 0)
    return fmt::format("a query that allows no compute types returns {:#x}", claim.compute_types);
  if (const Answer answer = device.review(spec); !answer.ok()) return "the node is claimed and " + answer.describe();
  if (!compiled.ok()) return "the node is claimed and " + compiled.describe();
  std::vector<onnx::Tensor> outputs;
  const Answer answer = device.compute(spec, inputs, outputs);
  out_ran = answer.ok();
  return answer.ok() ? "" : "the node is claimed and " + answer.describe();
}

Result check_operator(RemoteDevice& device, std::string_view op, std::string_view profile, size_t limit) {
  uint32_t ran_nodes = 0;
  size_t seen = 0;
  for (const OpCase& one : op_cases()) {
    if (one.op != op || one.profile != profile || seen++ == limit) continue;
    Random random(device.seed(), "coverage/" + one.name);
    const Problem problem = one.make(random);
    const auto spec = graph_of(problem, reference(problem), device.newest_opset());
    if (!spec) continue;
    bool ran = false;
    const std::string fault = dishonesty(device, *spec, run_inputs(problem), ran);
    if (!fault.empty()) return failed(one.name + ": " + fault);
    ran_nodes += ran;
  }
  return passed(ran_nodes);
}

// `change` turns the only node of a graph into an operator that no backend has. The node must be neither claimed nor
// compiled.
Result check_unknown(RemoteDevice& device, const std::function<void(NodeSpec&)>& change) {
  const Problem problem = problem_of("Add/float/same", device.seed(), "unknown");
  GraphSpec spec = *graph_of(problem, reference(problem), 27);
  change(spec.nodes[0]);
  std::vector<Claim> claims;
  if (const Answer answer = device.coverage(spec, claims); !answer.ok()) return failed(answer.describe());
  if (claims[0].answer != BP_ANSWER_NO) return failed("an operator that does not exist is claimed");
  if (device.compile(spec).ok()) return failed("an operator that does not exist compiles");
  return passed();
}

}  // namespace

void add_coverage(const Selection& selection, std::vector<Case>& out_cases) {
  const size_t limit = selection.full ? SIZE_MAX : 12;
  std::set<std::pair<std::string_view, std::string_view>> added;
  for (const OpCase& one : op_cases()) {
    if (!added.emplace(one.op, one.profile).second) continue;
    // An operator of these profiles may be in `core` too, so the profile distinguishes the names of the cases.
    const std::string suffix = one.profile == "fp16" || one.profile == kExtended ? "/" + std::string(one.profile) : "";
    const auto check = [&one, limit](RemoteDevice& device) {
      return check_operator(device, one.op, one.profile, limit);
    };
    out_cases.push_back(
        {.name = fmt::format("coverage/{}{}", one.op, suffix), .judge = check, .profile = std::string(one.profile)});
  }
  const auto add_unknown = [&](const char* name, void (*change)(NodeSpec&)) {
    out_cases.push_back({.name = fmt::format("coverage/unknown_{}", name),
                         .judge = [change](RemoteDevice& device) { return check_unknown(device, change); }});
  };
  add_unknown("operator", [](NodeSpec& node) { node.op_type = "Frobnicate"; });
  add_unknown("domain", [](NodeSpec& node) { node.domain = "org.example.unknown"; });
  add_unknown("version", [](NodeSpec& node) { node.since_version = 9999; });
  add_unknown("empty_name", [](NodeSpec& node) { node.op_type.clear(); });
}

}  // namespace backplane::conform

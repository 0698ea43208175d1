// SPDX-License-Identifier: Apache-2.0
#include "runtime/coverage.h"

#include <algorithm>

#include "runtime/device.h"
#include "runtime/operators.h"
#include "runtime/planner.h"

namespace backplane::cpu {

namespace {

// The overhead of calling a step.
constexpr double kStepSeconds = 100e-9;
constexpr uint32_t kNodesBetweenChecks = 256;

constexpr int kMaxDepth = 16;  // nesting of containers

// Names an input or output in the text of a refusal. The text is composed only if there is a refusal.
struct Operand {
  const char* kind;
  uint32_t index;
  std::string with(const std::string& what) const { return kind + std::to_string(index) + what; }
};

Verdict check_type(const bp_graph_t& graph, const bp_type_t& type, Operand operand, int depth = 0) {
  if (type.kind == 0) return no(BP_REASON_DTYPE, operand.with(" has no known type"));
  if (type.kind == BP_KIND_SPARSE_TENSOR)
    return no(BP_REASON_DTYPE, operand.with(" is a sparse tensor; make it dense"));
  if (type.kind != BP_KIND_TENSOR) {
    if (type.element >= graph.type_count)
      return no(BP_REASON_DTYPE, operand.with(" is a container whose elements have no known type"));
    if (depth == kMaxDepth)
      return no(BP_REASON_DTYPE,
                operand.with(" has containers nested more than " + std::to_string(kMaxDepth) + " levels deep"));
    return check_type(graph, *bp_graph_type(&graph, type.element), operand, depth + 1);
  }
  if (type.dtype >= 64 || (supported_dtypes() >> type.dtype & 1) == 0) {
    return no(BP_REASON_DTYPE,
              operand.with(" has data type " + std::string(view::dtype_name(type.dtype)) + ", which is not supported"));
  }
  if (type.rank > BP_MAX_RANK) {
    return no(BP_REASON_SHAPE, operand.with(" has rank " + std::to_string(type.rank) + "; at most " +
                                            std::to_string(BP_MAX_RANK) + " is supported"));
  }
  return yes();
}

Verdict check_types(const Node& node, const Row& row) {
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    if (Verdict v = check_type(node.graph(), node.input_type(i), {"input ", i}); !v) return v;
  }
  bool has_output = false;  // kernels and schedules rely on at least one output
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    if (!node.has_output(i)) continue;
    has_output = true;
    if (Verdict v = check_type(node.graph(), node.output_type(i), {"output ", i}); !v) return v;
  }
  if (!has_output) return no(BP_REASON_OPSET, "it has no output");
  if (!node.has_output(0) && (row.facts & kOmitsOutput0) == 0)
    return no(BP_REASON_OPSET,
              "output 0 is omitted; it is always computed, so give it a name even if no node reads it");
  return yes();
}

}  // namespace

bp_dtype_set_t supported_dtypes() {
  static const bp_dtype_set_t kAll = [] {
    bp_dtype_set_t set = bp_dtype_set_t{1} << BP_DTYPE_STRING;
    for (bp_dtype_t dtype = BP_DTYPE_FLOAT; dtype <= BP_DTYPE_INT2; ++dtype) {
      if (bytes_of(dtype, 1) != 0) set |= bp_dtype_set_t{1} << dtype;
    }
    return set;
  }();
  return kAll;
}

Verdict judge(const Node& node, const Row** out_row) {
  for (const bp_opset_t& opset : kNewestOpsets)
    if (node.domain() == std::string_view(opset.domain.data, opset.domain.size) && node.since_version() > opset.version)
      return no(BP_REASON_OPSET, "version " + std::to_string(node.since_version()) +
                                     " of the operator is newer than version " + std::to_string(opset.version) +
                                     ", the newest that is supported");
  const Operators& operators = *node.operators();
  const Row* row = operators.find(node);
  if (row == nullptr) {
    if (const Row* other = operators.find_operator(node)) {
      if (other->since_version <= node.since_version())
        return no(BP_REASON_DTYPE, "the operator is not supported for strings or for values that are not tensors");
      return no(BP_REASON_OPSET, "version " + std::to_string(node.since_version()) +
                                     " of the operator is not supported; the oldest supported version is " +
                                     std::to_string(other->since_version));
    }
    return no(BP_REASON_OPERATOR, "the operator is not known");
  }
  if (Verdict verdict = check_types(node, *row); !verdict) return verdict;
  if (Verdict verdict = row->supports(node); !verdict) return verdict;
  if (out_row != nullptr) *out_row = row;
  return yes();
}

Verdict supports_body(const Node& node, std::string_view name, uint32_t inputs, uint32_t outputs) {
  const bp_graph_t* graph = node.graph_in(name);
  std::string label(name);
  if (graph == nullptr) return no(BP_REASON_ATTRIBUTE, "it has no " + label);
  if (graph->input_count != inputs || graph->output_count != outputs) {
    return no(BP_REASON_ATTRIBUTE, "its " + label + " has " + std::to_string(graph->input_count) + " inputs and " +
                                       std::to_string(graph->output_count) + " outputs instead of " +
                                       std::to_string(inputs) + " and " + std::to_string(outputs));
  }
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    if (Verdict verdict = judge(Node(*graph, i, node.operators()), nullptr); !verdict)
      return no(verdict.reason, label + ": " + describe(*bp_graph_node(graph, i)) + ": " + verdict.detail);
  }
  return yes();
}

double estimate(const Row& row, const Node& node, const Device& device) {
  double bytes = 0;
  double output_elements = 0;
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    const double n = node.input_elements(i);
    if (n < 0) return 0;
    bytes += n * static_cast<double>(bytes_of(node.input_type(i).dtype, 1));
  }
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    if (!node.has_output(i)) continue;
    const double n = node.output_elements(i);
    if (n < 0) return 0;
    output_elements += n;
    bytes += n * static_cast<double>(bytes_of(node.output_type(i).dtype, 1));
  }
  const double operations = (row.operations == nullptr ? 1 : row.operations(node)) * output_elements;
  return kStepSeconds + std::max(operations / device.flops(), bytes / device.bytes_per_second());
}

void cover(const Device& device, sdk::Coverage& coverage) {
  const bp_graph_t& graph = *coverage.graph().raw();
  const bool bf16 = device.plan_context(coverage.compute_types()).bf16;
  for (uint32_t i = 0; i < coverage.node_count(); ++i) {
    if (i % kNodesBetweenChecks == 0) coverage.check_cancelled();
    const sdk::Node asked = coverage.node(i);
    if (asked.index() >= graph.node_count) {
      throw sdk::Error(BP_INVALID_ARGUMENT, "node " + std::to_string(asked.index()) +
                                                " does not exist; the number of nodes in the graph is " +
                                                std::to_string(graph.node_count));
    }
    const Node node(graph, asked.index(), &device.operators());
    const Row* row = nullptr;
    Verdict verdict = judge(node, &row);
    sdk::Verdict answer =
        verdict ? sdk::yes(estimate(*row, node, device)) : sdk::no(verdict.reason, std::move(verdict.detail));
    if (verdict && bf16 && (row->facts & kMultipliesInBf16) != 0 && node.input_type(0).dtype == BP_DTYPE_FLOAT)
      answer.compute_types = BP_COMPUTE_BF16;
    coverage.answer(asked, std::move(answer));
  }
}

}  // namespace backplane::cpu

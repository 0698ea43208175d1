// SPDX-License-Identifier: Apache-2.0
#include "discover/probe_graph.h"

#include <string_view>

#include "base/abi.h"

namespace backplane {
namespace {

// The graph as an ONNX model (IR version 8, opset 14), for plugins that read ONNX.
constexpr std::string_view kModel(
    "\x08\x08\x3a\x37"
    "\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu"
    "\x12\x05probe"
    "\x5a\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x04"
    "\x62\x0f\x0a\x01y\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x04"
    "\x42\x02\x10\x0e",
    63);

bp_status_t no_weight(const bp_graph_t*, uint32_t, const void**, bp_error_t*) {
  return BP_INVALID_ARGUMENT;
}
bp_status_t no_hash(const bp_graph_t*, uint32_t, uint64_t*, bp_error_t*) {
  return BP_INVALID_ARGUMENT;
}
void nothing_consumed(const bp_graph_t*, uint32_t) {}
bp_status_t serialize(const bp_graph_t*, uint64_t, bp_text_sink_t sink, void* context, bp_error_t*) {
  sink(context, abi::text(kModel));
  return BP_OK;
}

struct ProbeGraph {
  bp_graph_api_t api{};
  bp_dim_t dim{4, BP_NONE, 0};
  bp_type_t type{BP_KIND_TENSOR, BP_DTYPE_FLOAT, 1, 0, BP_NONE, 0};
  bp_value_t values[2]{};
  bp_use_t use{0, 0};
  bp_node_t node{};
  bp_opset_t opset{{}, 14, 0};
  uint32_t operands[2] = {0, 1};
  bp_graph_t graph{};

  ProbeGraph() {
    api.size = sizeof api;
    api.weight_map = no_weight;
    api.weight_consumed = nothing_consumed;
    api.weight_hash = no_hash;
    api.serialize = serialize;
    values[0] = {abi::text("x"), 0, BP_NONE, 0, BP_NONE, BP_NONE, 0, 1, BP_VALUE_INPUT};
    values[1] = {abi::text("y"), 0, 0, 0, BP_NONE, BP_NONE, 1, 0, BP_VALUE_OUTPUT};
    node.op_type = abi::text("Relu");
    node.since_version = 14;
    node.first_input = 0;
    node.input_count = 1;
    node.first_output = 1;
    node.output_count = 1;
    graph.size = sizeof graph;
    graph.api = &api;
    graph.id = 1;
    graph.name = abi::text("probe");
    graph.nodes = &node, graph.node_count = 1, graph.node_stride = sizeof node;
    graph.values = values, graph.value_count = 2, graph.value_stride = sizeof *values;
    graph.types = &type, graph.type_count = 1, graph.type_stride = sizeof type;
    graph.attribute_stride = sizeof(bp_attribute_t);
    graph.weight_stride = sizeof(bp_weight_t);
    graph.symbol_stride = sizeof(bp_symbol_t);
    graph.opsets = &opset, graph.opset_count = 1, graph.opset_stride = sizeof opset;
    graph.uses = &use, graph.use_count = 1;
    graph.dims = &dim, graph.dim_count = 1;
    graph.operands = operands, graph.operand_count = 2;
    graph.inputs = &operands[0], graph.input_count = 1;
    graph.outputs = &operands[1], graph.output_count = 1;
    graph.ir_version = 8;
  }
};

}  // namespace

const bp_graph_t& probe_graph() {
  static const ProbeGraph kGraph;
  return kGraph.graph;
}

}  // namespace backplane

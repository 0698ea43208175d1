// SPDX-License-Identifier: Apache-2.0
#include "ops/upgrade/upgrade.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <unordered_map>

#include "base/names.h"
#include "ir/subgraphs.h"
#include "ops/upgrade/upgrades.h"

namespace backplane::ops {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

// Sorted by domain, operator and version.
constexpr Upgrade kUpgrades[] = {
    {"", "Abs", 6, no_consumed_inputs},
    {"", "Add", 6, no_consumed_inputs},
    {"", "Add", 7, numpy_broadcast},
    {"", "And", 7, numpy_broadcast},
    {"", "ArgMax", 12, unchanged},
    {"", "ArgMin", 12, unchanged},
    {"", "Attention", 24, unchanged},
    {"", "Attention", 25, unchanged},
    {"", "AveragePool", 7, unchanged},
    {"", "AveragePool", 10, unchanged},
    {"", "AveragePool", 19, unchanged},
    {"", "BatchNormalization", 6, no_consumed_inputs},
    {"", "BatchNormalization", 7, no_is_test},
    {"", "BatchNormalization", 9, batch_normalization_spatial},
    {"", "BatchNormalization", 14, batch_normalization_outputs},
    {"", "Cast", 6, cast_to_number},
    {"", "Cast", 19, unchanged},
    {"", "Cast", 24, unchanged},
    {"", "CastLike", 19, unchanged},
    {"", "CastLike", 24, unchanged},
    {"", "Ceil", 6, no_consumed_inputs},
    {"", "Clip", 6, no_consumed_inputs},
    {"", "Clip", 11, clip_inputs},
    {"", "Concat", 4, concat_axis},
    {"", "Constant", 11, unchanged},
    {"", "Constant", 12, unchanged},
    {"", "DFT", 20, dft_axis},
    {"", "DepthToSpace", 11, unchanged},
    {"", "DequantizeLinear", 13, unchanged},
    {"", "DequantizeLinear", 21, unchanged},
    {"", "DequantizeLinear", 23, unchanged},
    {"", "Div", 6, no_consumed_inputs},
    {"", "Div", 7, numpy_broadcast},
    {"", "Dropout", 6, no_consumed_inputs},
    {"", "Dropout", 7, no_is_test},
    {"", "Dropout", 10, dropout_mask},
    {"", "Dropout", 12, dropout_inputs},
    {"", "Elu", 6, no_consumed_inputs},
    {"", "Equal", 7, numpy_broadcast},
    {"", "Exp", 6, no_consumed_inputs},
    {"", "Floor", 6, no_consumed_inputs},
    {"", "GRU", 3, gru_direction},
    {"", "GRU", 7, no_output_sequence},
    {"", "GRU", 14, unchanged},
    {"", "GatherND", 12, unchanged},
    {"", "Gemm", 7, gemm_broadcast},
    {"", "Gemm", 11, unchanged},
    {"", "GlobalLpPool", 2, lp_whole_p},
    {"", "Greater", 7, numpy_broadcast},
    {"", "GridSample", 20, grid_sample_modes},
    {"", "GroupNormalization", 21, group_normalization_channels},
    {"", "HardSigmoid", 6, no_consumed_inputs},
    {"", "Hardmax", 13, softmax_axis},
    {"", "InstanceNormalization", 6, no_consumed_inputs},
    {"", "LSTM", 7, no_output_sequence},
    {"", "LSTM", 14, unchanged},
    {"", "LeakyRelu", 6, no_consumed_inputs},
    {"", "Less", 7, numpy_broadcast},
    {"", "Log", 6, no_consumed_inputs},
    {"", "LogSoftmax", 13, softmax_axis},
    {"", "LpPool", 2, lp_whole_p},
    {"", "LpPool", 18, unchanged},
    {"", "Max", 6, no_consumed_inputs},
    {"", "MaxPool", 8, unchanged},
    {"", "MaxPool", 10, unchanged},
    {"", "Mean", 6, no_consumed_inputs},
    {"", "Min", 6, no_consumed_inputs},
    {"", "Mul", 6, no_consumed_inputs},
    {"", "Mul", 7, numpy_broadcast},
    {"", "Neg", 6, no_consumed_inputs},
    {"", "OptionalHasElement", 18, unchanged},
    {"", "Or", 7, numpy_broadcast},
    {"", "PRelu", 6, no_consumed_inputs},
    {"", "PRelu", 7, prelu_broadcast},
    {"", "Pad", 2, pad_pads},
    {"", "Pad", 11, pad_inputs},
    {"", "Pad", 18, unchanged},
    {"", "Pow", 7, numpy_broadcast},
    {"", "QuantizeLinear", 13, unchanged},
    {"", "QuantizeLinear", 19, unchanged},
    {"", "QuantizeLinear", 21, unchanged},
    {"", "QuantizeLinear", 23, unchanged},
    {"", "RNN", 7, no_output_sequence},
    {"", "RNN", 14, unchanged},
    {"", "Range", 27, unchanged},
    {"", "Reciprocal", 6, no_consumed_inputs},
    {"", "ReduceL1", 18, axes_input},
    {"", "ReduceL2", 18, axes_input},
    {"", "ReduceLogSum", 18, axes_input},
    {"", "ReduceLogSumExp", 18, axes_input},
    {"", "ReduceMax", 18, axes_input},
    {"", "ReduceMean", 18, axes_input},
    {"", "ReduceMin", 18, axes_input},
    {"", "ReduceProd", 18, axes_input},
    {"", "ReduceSum", 13, axes_input},
    {"", "ReduceSumSquare", 18, axes_input},
    {"", "Relu", 6, no_consumed_inputs},
    {"", "Reshape", 5, reshape_input},
    {"", "Reshape", 14, unchanged},
    {"", "Resize", 11, resize_modes},
    {"", "Resize", 13, resize_tf_half_pixel},
    {"", "Resize", 18, unchanged},
    {"", "RoiAlign", 16, roi_align_mode},
    {"", "Scan", 9, scan_batch},
    {"", "Scatter", 11, scatter_elements},
    {"", "ScatterElements", 16, unchanged},
    {"", "ScatterND", 16, unchanged},
    {"", "Selu", 6, no_consumed_inputs},
    {"", "Shape", 15, unchanged},
    {"", "Sigmoid", 6, no_consumed_inputs},
    {"", "Slice", 10, slice_inputs},
    {"", "Softmax", 13, softmax_axis},
    {"", "SpaceToDepth", 28, unchanged},
    {"", "Split", 2, split_axis},
    {"", "Split", 13, split_input},
    {"", "Split", 18, split_num_outputs},
    {"", "Sqrt", 6, no_consumed_inputs},
    {"", "Squeeze", 13, axes_input},
    {"", "Sub", 6, no_consumed_inputs},
    {"", "Sub", 7, numpy_broadcast},
    {"", "Sum", 6, no_consumed_inputs},
    {"", "Tanh", 6, no_consumed_inputs},
    {"", "Tile", 6, tile_repeats},
    {"", "TopK", 10, top_k_input},
    {"", "TopK", 11, unchanged},
    {"", "Unsqueeze", 13, axes_input},
    {"", "Upsample", 7, upsample_scales},
    {"", "Upsample", 9, upsample_input},
    {"", "Upsample", 10, upsample_resize},
    {"", "Xor", 7, numpy_broadcast},
    {kMl, "LabelEncoder", 2, label_encoder_keys},
    {kMl, "LabelEncoder", 4, unchanged},
    {kMl, "TreeEnsembleClassifier", 3, unchanged},
    {kMl, "TreeEnsembleRegressor", 3, unchanged},
};

// The data type of an output, if it follows from the schema alone, from the schema and the type of an input, or from
// Cast's attribute `to`. Otherwise BP_DTYPE_UNDEFINED.
bp_dtype_t output_dtype(const model::Graph& graph, const Node& node, const Formal& formal) {
  if (formal.kinds == 1u << BP_KIND_TENSOR && std::has_single_bit(formal.dtypes)) {
    return static_cast<bp_dtype_t>(std::countr_zero(formal.dtypes));
  }
  const std::vector<Formal>& inputs = node.schema->inputs;
  for (size_t slot = 0; slot < node.inputs.size() && slot < inputs.size(); ++slot) {
    if (inputs[slot].type != formal.type || node.inputs[slot] == BP_NONE) continue;
    const model::Type& type = graph.values[node.inputs[slot]].type;
    if (type.kind == BP_KIND_TENSOR) return type.dtype;
  }
  if (node.op_type == "Cast") return static_cast<bp_dtype_t>(node.attr("to", int64_t{0}));
  return BP_DTYPE_UNDEFINED;
}

// Sets the data types of outputs that output_dtype determines. Upgrades run before inference and need them.
void spread_dtypes(model::Graph& graph, const Node& node) {
  for (size_t slot = 0; slot < node.outputs.size() && slot < node.schema->outputs.size(); ++slot) {
    if (node.outputs[slot] == BP_NONE) continue;
    model::Type& type = graph.values[node.outputs[slot]].type;
    if (type.kind != 0) continue;
    type.dtype = output_dtype(graph, node, node.schema->outputs[slot]);
    if (type.dtype > BP_DTYPE_INT2) type.dtype = BP_DTYPE_UNDEFINED;
    if (type.dtype != BP_DTYPE_UNDEFINED) type.kind = BP_KIND_TENSOR;
  }
}

std::vector<bool> find_reads(const model::Graph& graph) {
  std::vector<bool> read(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      if (input != BP_NONE) read[input] = true;
    }
    for (const ValueId captured : model::captures(graph, node)) read[captured] = true;
  }
  for (const ValueId output : graph.outputs) read[output] = true;
  return read;
}

// Upgrades a node, one form at a time.
Status upgrade_node(Rewrite& r) {
  Node& node = r.node;
  write_defaults(node);
  while (const Schema* next = node.schema->newer) {
    const Upgrade* change = find_upgrade(*next);
    if (next->deprecated && !change) break;  // stop at the last form that is not deprecated
    const Schema* before = node.schema;
    if (change) BP_TRY(change->function(r));
    if (node.schema == before) node.schema = next;
  }
  node.since_version = node.schema->since_version;
  write_defaults(node);
  return {};
}

Status upgrade_graph(model::Model& model, model::Graph& graph) {
  if (graph.parent) {
    for (model::Value& value : graph.values) {
      if (value.outer != BP_NONE && value.type.kind == 0) value.type = graph.parent->values[value.outer].type;
    }
  }
  const std::vector<bool> read = find_reads(graph);
  const auto finish = [&graph](Node& node) {
    write_defaults(node);
    spread_dtypes(graph, node);
  };
  std::vector<Node>& nodes = graph.nodes;
  std::vector<Node> made;  // stays empty until a node is inserted
  for (size_t n = 0; n < nodes.size(); ++n) {
    Node& node = nodes[n];
    model.charge(sizeof(Node), "upgrading operators");
    for (model::Graph* body : model::bodies(graph, node)) BP_TRY(upgrade_graph(model, *body));
    std::vector<Node> before, after;
    if (node.schema) {
      Rewrite rewrite(model, graph, before, read, node);
      BP_TRY(upgrade_node(rewrite));
      after = rewrite.take_after();
    }
    for (Node& added : before) finish(added);
    if (node.schema) finish(node);
    for (Node& added : after) finish(added);
    if (made.empty() && before.empty() && after.empty()) continue;
    if (made.empty()) std::ranges::move(nodes.begin(), nodes.begin() + n, std::back_inserter(made));
    std::ranges::move(before, std::back_inserter(made));
    made.push_back(std::move(node));
    std::ranges::move(after, std::back_inserter(made));
  }
  if (!made.empty()) nodes = std::move(made);
  return {};
}

}  // namespace

Status unchanged(Rewrite&) {
  return {};
}

std::span<const Upgrade> all_upgrades() {
  return kUpgrades;
}

const Upgrade* find_upgrade(const Schema& to) {
  static const auto kBySchema = [] {
    std::unordered_map<const Schema*, const Upgrade*> map;
    for (const Upgrade& entry : kUpgrades) map.emplace(find_schema(entry.domain, entry.op, entry.to_version), &entry);
    return map;
  }();
  const auto found = kBySchema.find(&to);
  return found == kBySchema.end() ? nullptr : found->second;
}

void write_defaults(model::Node& node) {
  for (const AttributeRule& rule : node.schema->attributes) {
    if (rule.has_default && !node.find(rule.name)) node.set(rule.fallback);
  }
}

Status upgrade(model::Model& model) {
  return upgrade_graph(model, model.graph);
}

}  // namespace backplane::ops

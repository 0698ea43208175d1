// SPDX-License-Identifier: Apache-2.0
// The operators of ai.onnx that ONNXIFI libraries may know, the opsets in which an operator got a new form, and what
// each form changed. Operators with subgraphs, sequences or optional values, which ONNXIFI cannot express, are left
// out.
#include "downgrade.h"

#include <algorithm>

#include "positions.h"
#include "rewrite.h"
#include "windows.h"

namespace onnxifi_backend {
namespace {

// Sorted by operator, then by version, the newest first. Steps of one form are applied in order.
constexpr Step kSteps[] = {
    {"ArgMax", 12, drop, "select_last_index", "0"},
    {"ArgMax", 11, positive_axes},
    {"ArgMin", 12, drop, "select_last_index", "0"},
    {"ArgMin", 11, positive_axes},
    {"Attention", 25, drop, "left_window_size", "-1"},
    {"Attention", 25, drop, "right_window_size", "-1"},
    {"Attention", 24, attention_24},
    {"AveragePool", 22, pool_22},
    {"AveragePool", 19, drop, "dilations", "ones"},
    {"AveragePool", 10, drop, "ceil_mode", "0"},
    {"BatchNormalization", 15, batch_normalization_15},
    {"BatchNormalization", 14, batch_normalization_14},
    {"BatchNormalization", 9, unchanged},
    {"BitShift", 28, bit_shift_28},
    {"Cast", 24, drop, "round_mode", "up"},
    {"Cast", 19, drop, "saturate", "1"},
    {"CastLike", 24, drop, "round_mode", "up"},
    {"CastLike", 19, drop, "saturate", "1"},
    {"Clip", 13, clip_13},
    {"Clip", 11, clip_11},
    {"Compress", 11, positive_axes},
    {"Concat", 11, positive_axes},
    {"ConvTranspose", 11, conv_transpose_11},
    {"DFT", 20, dft_20},
    {"DepthToSpace", 11, drop, "mode", "DCR"},
    {"DequantizeLinear", 23, drop, "output_dtype", "0"},
    {"DequantizeLinear", 21, drop, "block_size", "0"},
    {"DequantizeLinear", 13, per_tensor},
    {"Dropout", 12, dropout_12},
    {"Dropout", 10, dropout_10},
    {"Flatten", 11, positive_axes},
    {"GRU", 14, drop, "layout", "0"},
    {"Gather", 11, positive_axes},
    {"Gather", 11, positive_indices},
    {"GatherND", 12, drop, "batch_dims", "0"},
    {"Gemm", 11, gemm_11},
    {"GridSample", 20, grid_sample_20},
    {"Hardmax", 13, softmax_13},
    {"Hardmax", 11, positive_axes},
    {"LSTM", 14, drop, "layout", "0"},
    {"LogSoftmax", 13, softmax_13},
    {"LogSoftmax", 11, positive_axes},
    {"LpPool", 22, pool_22},
    {"LpPool", 18, drop, "ceil_mode", "0"},
    {"LpPool", 18, drop, "dilations", "ones"},
    {"Max", 8, equal_shapes},
    {"MaxPool", 22, pool_22},
    {"MaxPool", 10, drop, "ceil_mode", "0"},
    {"MaxPool", 10, drop, "dilations", "ones"},
    {"MaxPool", 8, max_pool_8},
    {"Mean", 8, equal_shapes},
    {"Min", 8, equal_shapes},
    {"Mod", 28, mod_28},
    {"OneHot", 11, positive_axes},
    {"OneHot", 11, positive_indices},
    {"Pad", 19, pad_19},
    {"Pad", 18, pad_18},
    {"Pad", 11, pad_11},
    {"Pow", 12, equal_types},
    {"QuantizeLinear", 23, equal_types},
    {"QuantizeLinear", 23, drop, "precision", "0"},
    {"QuantizeLinear", 21, drop, "block_size", "0"},
    {"QuantizeLinear", 21, drop, "output_dtype", "0"},
    {"QuantizeLinear", 19, drop, "saturate", "1"},
    {"QuantizeLinear", 13, per_tensor},
    {"RNN", 14, drop, "layout", "0"},
    {"Range", 27, drop, "stash_type", "1"},
    {"ReduceL1", 18, reduce_axes},
    {"ReduceL1", 11, positive_axes},
    {"ReduceL2", 18, reduce_axes},
    {"ReduceL2", 11, positive_axes},
    {"ReduceLogSum", 18, reduce_axes},
    {"ReduceLogSum", 11, positive_axes},
    {"ReduceLogSumExp", 18, reduce_axes},
    {"ReduceLogSumExp", 11, positive_axes},
    {"ReduceMax", 18, reduce_axes},
    {"ReduceMax", 11, positive_axes},
    {"ReduceMean", 18, reduce_axes},
    {"ReduceMean", 11, positive_axes},
    {"ReduceMin", 18, reduce_axes},
    {"ReduceMin", 11, positive_axes},
    {"ReduceProd", 18, reduce_axes},
    {"ReduceProd", 11, positive_axes},
    {"ReduceSum", 13, reduce_axes},
    {"ReduceSum", 11, positive_axes},
    {"ReduceSumSquare", 18, reduce_axes},
    {"ReduceSumSquare", 11, positive_axes},
    {"Reshape", 14, reshape_14},
    {"Resize", 19, resize_19},
    {"Resize", 18, resize_18},
    {"Resize", 13, resize_13},
    {"Resize", 11, resize_11},
    {"Resize", 10, resize_10},
    {"RoiAlign", 16, drop, "coordinate_transformation_mode", "output_half_pixel"},
    {"ScatterElements", 18, scatter_18},
    {"ScatterElements", 16, drop, "reduction", "none"},
    {"ScatterElements", 11, positive_axes},
    {"ScatterElements", 11, positive_indices},
    {"ScatterElements", 11, scatter_elements_11},
    {"ScatterND", 18, scatter_18},
    {"ScatterND", 16, drop, "reduction", "none"},
    {"Shape", 15, shape_15},
    {"Slice", 13, slice_13},
    {"Slice", 11, slice_11},
    {"Slice", 10, slice_10},
    {"Softmax", 13, softmax_13},
    {"Softmax", 11, positive_axes},
    {"SpaceToDepth", 28, drop, "mode", "DCR"},
    {"Split", 18, split_18},
    {"Split", 13, split_13},
    {"Split", 11, positive_axes},
    {"Squeeze", 13, squeeze_13},
    {"Squeeze", 11, positive_axes},
    {"Sum", 8, equal_shapes},
    {"TopK", 11, drop, "largest", "1"},
    {"TopK", 11, ignore, "sorted"},
    {"TopK", 11, positive_axes},
    {"TopK", 10, top_k_10},
    {"Unsqueeze", 13, squeeze_13},
    {"Unsqueeze", 11, positive_axes},
    {"Upsample", 9, upsample_9},
};

// Sorted by operator. The oldest form listed is the one in opset 7, or the first form of operators that appeared later.
// clang-format off
constexpr Forms kForms[] = {
    {"Abs", {13, 6}},
    {"Acos", {22, 7}},
    {"Acosh", {22, 9}},
    {"Add", {14, 13, 7}},
    {"And", {7}},
    {"ArgMax", {13, 12, 11, 1}},
    {"ArgMin", {13, 12, 11, 1}},
    {"Asin", {22, 7}},
    {"Asinh", {22, 9}},
    {"Atan", {22, 7}},
    {"Atanh", {22, 9}},
    {"Attention", {25, 24, 23}},
    {"AveragePool", {22, 19, 11, 10, 7}},
    {"BatchNormalization", {15, 14, 9, 7}},
    {"Bernoulli", {22, 15}},
    {"BitShift", {28, 11}},
    {"BlackmanWindow", {17}},
    {"Cast", {28, 25, 24, 23, 21, 19, 13, 9, 6}},
    {"CastLike", {25, 24, 23, 21, 19, 15}},
    {"Ceil", {13, 6}},
    {"Celu", {28, 12}},
    {"Clip", {13, 12, 11, 6}},
    {"Compress", {28, 11, 9}},
    {"Concat", {13, 11, 4}},
    {"ConstantOfShape", {25, 24, 23, 21, 20, 9}},
    {"Conv", {22, 11, 1}},
    {"ConvInteger", {10}},
    {"ConvTranspose", {22, 11, 1}},
    {"Cos", {22, 7}},
    {"Cosh", {22, 9}},
    {"CumSum", {14, 11}},
    {"DFT", {20, 17}},
    {"DepthToSpace", {28, 13, 11, 1}},
    {"DequantizeLinear", {28, 25, 24, 23, 21, 19, 13, 10}},
    {"Det", {22, 11}},
    {"Div", {14, 13, 7}},
    {"Dropout", {22, 13, 12, 10, 7}},
    {"DynamicQuantizeLinear", {11}},
    {"Einsum", {28, 12}},
    {"Elu", {22, 6}},
    {"Equal", {19, 13, 11, 7}},
    {"Erf", {13, 9}},
    {"Exp", {13, 6}},
    {"Expand", {13, 8}},
    {"EyeLike", {22, 9}},
    {"Flatten", {25, 24, 23, 21, 13, 11, 9, 1}},
    {"Floor", {13, 6}},
    {"GRU", {22, 14, 7}},
    {"Gather", {13, 11, 1}},
    {"GatherElements", {13, 11}},
    {"GatherND", {13, 12, 11}},
    {"Gemm", {13, 11, 9, 7}},
    {"GlobalAveragePool", {22, 1}},
    {"GlobalLpPool", {22, 2}},
    {"GlobalMaxPool", {22, 1}},
    {"Greater", {13, 9, 7}},
    {"GreaterOrEqual", {16, 12}},
    {"GridSample", {22, 20, 16}},
    {"HammingWindow", {17}},
    {"HannWindow", {17}},
    {"HardSigmoid", {22, 6}},
    {"HardSwish", {22, 14}},
    {"Hardmax", {13, 11, 1}},
    {"Identity", {25, 24, 23, 21, 19, 16, 14, 13, 1}},
    {"InstanceNormalization", {22, 6}},
    {"IsInf", {20, 10}},
    {"IsNaN", {20, 13, 9}},
    {"LRN", {13, 1}},
    {"LSTM", {22, 14, 7}},
    {"LayerNormalization", {17}},
    {"LeakyRelu", {16, 6}},
    {"Less", {13, 9, 7}},
    {"LessOrEqual", {16, 12}},
    {"Log", {13, 6}},
    {"LogSoftmax", {13, 11, 1}},
    {"LpNormalization", {22, 1}},
    {"LpPool", {22, 18, 11, 2}},
    {"MatMul", {13, 9, 1}},
    {"MatMulInteger", {10}},
    {"Max", {13, 12, 8, 6}},
    {"MaxPool", {22, 12, 11, 10, 8, 1}},
    {"MaxRoiPool", {22, 1}},
    {"MaxUnpool", {22, 11, 9}},
    {"Mean", {13, 8, 6}},
    {"MeanVarianceNormalization", {13, 9}},
    {"MelWeightMatrix", {17}},
    {"Min", {13, 12, 8, 6}},
    {"Mod", {28, 13, 10}},
    {"Mul", {14, 13, 7}},
    {"Multinomial", {22, 7}},
    {"Neg", {13, 6}},
    {"NegativeLogLikelihoodLoss", {22, 13, 12}},
    {"NonMaxSuppression", {11, 10}},
    {"NonZero", {13, 9}},
    {"Not", {1}},
    {"OneHot", {28, 11, 9}},
    {"Or", {7}},
    {"PRelu", {16, 9, 7}},
    {"Pad", {25, 24, 23, 21, 19, 18, 13, 11, 2}},
    {"Pow", {15, 13, 12, 7}},
    {"QLinearConv", {10}},
    {"QLinearMatMul", {21, 10}},
    {"QuantizeLinear", {28, 25, 24, 23, 21, 19, 13, 10}},
    {"RNN", {22, 14, 7}},
    {"RandomNormal", {22, 1}},
    {"RandomNormalLike", {22, 1}},
    {"RandomUniform", {22, 1}},
    {"RandomUniformLike", {22, 1}},
    {"Range", {27, 11}},
    {"Reciprocal", {13, 6}},
    {"ReduceL1", {18, 13, 11, 1}},
    {"ReduceL2", {18, 13, 11, 1}},
    {"ReduceLogSum", {28, 18, 13, 11, 1}},
    {"ReduceLogSumExp", {28, 18, 13, 11, 1}},
    {"ReduceMax", {20, 18, 13, 12, 11, 1}},
    {"ReduceMean", {18, 13, 11, 1}},
    {"ReduceMin", {20, 18, 13, 12, 11, 1}},
    {"ReduceProd", {18, 13, 11, 1}},
    {"ReduceSum", {13, 11, 1}},
    {"ReduceSumSquare", {18, 13, 11, 1}},
    {"Relu", {14, 13, 6}},
    {"Reshape", {25, 24, 23, 21, 19, 14, 13, 5}},
    {"Resize", {19, 18, 13, 11, 10}},
    {"ReverseSequence", {28, 10}},
    {"RoiAlign", {22, 16, 10}},
    {"Round", {22, 11}},
    {"STFT", {17}},
    {"Scatter", {9}},
    {"ScatterElements", {18, 16, 13, 11}},
    {"ScatterND", {18, 16, 13, 11}},
    {"Selu", {22, 6}},
    {"Shape", {25, 24, 23, 21, 19, 15, 13, 1}},
    {"Shrink", {9}},
    {"Sigmoid", {13, 6}},
    {"Sign", {13, 9}},
    {"Sin", {22, 7}},
    {"Sinh", {22, 9}},
    {"Size", {25, 24, 23, 21, 19, 13, 1}},
    {"Slice", {13, 11, 10, 1}},
    {"Softmax", {13, 11, 1}},
    {"SoftmaxCrossEntropyLoss", {13, 12}},
    {"Softplus", {22, 1}},
    {"Softsign", {22, 1}},
    {"SpaceToDepth", {28, 13, 1}},
    {"Split", {18, 13, 11, 2}},
    {"Sqrt", {13, 6}},
    {"Squeeze", {25, 24, 23, 21, 13, 11, 1}},
    {"Sub", {14, 13, 7}},
    {"Sum", {13, 8, 6}},
    {"Tan", {22, 7}},
    {"Tanh", {13, 6}},
    {"ThresholdedRelu", {22, 10}},
    {"Tile", {13, 6}},
    {"TopK", {24, 11, 10, 1}},
    {"Transpose", {25, 24, 23, 21, 13, 1}},
    {"Trilu", {14}},
    {"Unique", {28, 11}},
    {"Unsqueeze", {25, 24, 23, 21, 13, 11, 1}},
    {"Upsample", {9, 7}},
    {"Where", {16, 9}},
    {"Xor", {7}},
};
// clang-format on

const Forms* find(std::string_view op) {
  const auto at = std::lower_bound(std::begin(kForms), std::end(kForms), op,
                                   [](const Forms& forms, std::string_view name) { return forms.op < name; });
  return at != std::end(kForms) && at->op == op ? at : nullptr;
}

// Whether the operator may omit output 0 and still return another output.
bool may_omit_output_0(std::string_view op) {
  return op == "GRU" || op == "LSTM" || op == "RNN" || op == "Split";
}

// Rewrites a node in the previous form. Returns why this is impossible, or an empty string.
std::string step_back(OnnxModel& onnx_model, OnnxNode& node, const Forms& forms) {
  const std::string op = node.op;
  const uint32_t since = node.since;
  if ((node.outputs.empty() || !node.outputs.front()) && !may_omit_output_0(op))  // the steps read it
    return "output 0 of " + op + " is omitted, so the node cannot be written in an older form";
  const auto* const form = std::find(std::begin(forms.since), std::end(forms.since), since);
  if (form == std::end(forms.since))
    return op + " in version " + std::to_string(since) +
           " is not among the forms that this backend can write in older ones";
  for (const Step& step : kSteps) {
    if (step.op != op || step.since != since) continue;
    Rewrite rewrite(onnx_model, node, step);
    if (std::string refusal = step.function(rewrite); !refusal.empty()) return refusal;
  }
  if (node.op != op) {  // a step replaced the operator: use the newest form of the new one before `since`
    for (const uint32_t older : find(node.op)->since) {
      if (older >= since) continue;
      node.since = older;
      return {};
    }
  }
  const auto* const older = form + 1;
  if (older == std::end(forms.since) || *older == 0) return op + " appeared in version " + std::to_string(since);
  node.since = *older;
  return {};
}

}  // namespace

std::span<const Step> steps() {
  return kSteps;
}
std::span<const Forms> forms() {
  return kForms;
}

std::string downgrade(OnnxModel& onnx_model, uint32_t opset) {
  for (OnnxNode& node : onnx_model.nodes()) {
    if (!node.domain.empty()) continue;
    drop_overridden_pads(node);
    while (node.since > opset) {
      const Forms* const forms = find(node.op);
      std::string refusal = forms == nullptr ? node.op + " in version " + std::to_string(node.since) + " is newer"
                                             : step_back(onnx_model, node, *forms);
      if (!refusal.empty()) return refusal + "; the library reads operator set " + std::to_string(opset);
    }
  }
  return {};
}

}  // namespace onnxifi_backend

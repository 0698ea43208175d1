// SPDX-License-Identifier: Apache-2.0
// Cases of the group negative: a graph that breaks ONNX's rules must cause an error code, never a crash or a
// result without an error.
#include <algorithm>

#include "checks/group.h"

namespace backplane::conform {
namespace {

using Change = void (*)(GraphSpec& graph);

struct Row {
  const char* name;
  const char* op_case;  // the case whose graph is changed
  Change change;
};

NodeSpec& node(GraphSpec& graph) {
  return graph.nodes[0];
}
template <class T>
void set(GraphSpec& graph, const char* name, T value) {
  Attributes& attributes = node(graph).attributes;
  const auto found =
      std::find_if(attributes.begin(), attributes.end(), [&](const Attribute& a) { return a.name == name; });
  if (found == attributes.end())
    attributes.push_back({name, std::move(value)});
  else
    found->value = std::move(value);
}
ValueSpec& input(GraphSpec& graph, size_t i) {
  return graph.values[node(graph).inputs[i]];
}
ValueSpec& output(GraphSpec& graph, size_t i = 0) {
  return graph.values[node(graph).outputs[i]];
}
void set_weight(GraphSpec& graph, size_t i, const std::vector<int64_t>& values) {
  input(graph, i).weight = integers(values);
  input(graph, i).extents = {static_cast<int64_t>(values.size())};
}
void drop_input(GraphSpec& graph) {
  const uint32_t gone = node(graph).inputs.back();
  node(graph).inputs.pop_back();
  std::erase(graph.inputs, gone);
}

const Row kRows[] = {
    {"add_types_differ", "Add/float/same", [](GraphSpec& g) { input(g, 1).dtype = BP_DTYPE_INT32; }},
    {"add_output_type", "Add/float/same", [](GraphSpec& g) { output(g).dtype = BP_DTYPE_INT64; }},
    {"add_output_extents", "Add/float/same",
     [](GraphSpec& g) {
       output(g).extents = {3, 4};
     }},
    {"add_output_rank", "Add/float/same", [](GraphSpec& g) { output(g).extents = {15}; }},
    {"add_no_broadcast", "Add/float/same",
     [](GraphSpec& g) {
       input(g, 1).extents = {3, 4};
     }},
    {"add_one_input", "Add/float/same", drop_input},
    {"add_omitted_input", "Add/float/same",
     [](GraphSpec& g) {
       std::erase(g.inputs, node(g).inputs[1]);
       node(g).inputs[1] = BP_NONE;
     }},
    {"add_three_inputs", "Add/float/same", [](GraphSpec& g) { node(g).inputs.push_back(node(g).inputs[0]); }},
    {"add_bool", "Add/float/same",
     [](GraphSpec& g) {
       for (ValueSpec& value : g.values) value.dtype = BP_DTYPE_BOOL;
     }},
    {"relu_string", "Relu/float/block",
     [](GraphSpec& g) {
       for (ValueSpec& value : g.values) value.dtype = BP_DTYPE_STRING;
     }},
    {"relu_unknown_type", "Relu/float/block",
     [](GraphSpec& g) {
       for (ValueSpec& value : g.values) value.dtype = 4711;
     }},
    {"relu_two_outputs", "Relu/float/block",
     [](GraphSpec& g) {
       g.values.push_back(output(g));
       node(g).outputs.push_back(static_cast<uint32_t>(g.values.size() - 1));
       g.outputs.push_back(static_cast<uint32_t>(g.values.size() - 1));
     }},
    {"matmul_inner", "MatMul/float/small_positive",
     [](GraphSpec& g) {
       input(g, 1).extents = {4, 3};
     }},
    {"matmul_scalar", "MatMul/float/small_positive", [](GraphSpec& g) { input(g, 0).extents = {}; }},
    {"gemm_rank", "Gemm/float/plain_k6_positive",
     [](GraphSpec& g) {
       input(g, 0).extents = {5, 6, 1};
     }},
    {"gemm_trans_type", "Gemm/float/plain_k6_positive", [](GraphSpec& g) { set(g, "transA", std::string("yes")); }},
    {"gemm_bias", "Gemm/float/bias_full_k6_positive",
     [](GraphSpec& g) {
       input(g, 2) = {BP_DTYPE_FLOAT, {6}, floats({6}, std::vector<float>(6, 1))};
     }},
    {"conv_channels", "Conv/float/3x3_positive",
     [](GraphSpec& g) {
       input(g, 0).extents = {1, 2, 9, 9};
     }},
    {"conv_group", "Conv/float/3x3_positive", [](GraphSpec& g) { set(g, "group", int64_t{2}); }},
    {"conv_group_zero", "Conv/float/3x3_positive", [](GraphSpec& g) { set(g, "group", int64_t{0}); }},
    {"conv_stride_zero", "Conv/float/3x3_positive",
     [](GraphSpec& g) {
       set(g, "strides", Extents{0, 1});
     }},
    {"conv_stride_count", "Conv/float/3x3_positive", [](GraphSpec& g) { set(g, "strides", Extents{1}); }},
    {"conv_dilation_negative", "Conv/float/3x3_positive",
     [](GraphSpec& g) {
       set(g, "dilations", Extents{-1, 1});
     }},
    {"conv_pads_count", "Conv/float/3x3_positive",
     [](GraphSpec& g) {
       set(g, "pads", Extents{0, 0});
     }},
    {"conv_pads_huge", "Conv/float/3x3_positive",
     [](GraphSpec& g) {
       set(g, "pads", Extents{INT64_MAX, 0, INT64_MAX, 0});
     }},
    {"conv_kernel_shape", "Conv/float/3x3_positive",
     [](GraphSpec& g) {
       set(g, "kernel_shape", Extents{5, 5});
     }},
    {"conv_auto_pad", "Conv/float/3x3_positive", [](GraphSpec& g) { set(g, "auto_pad", std::string("SOMEHOW")); }},
    {"conv_bias", "Conv/float/3x3_padded_positive",
     [](GraphSpec& g) {
       input(g, 2) = {BP_DTYPE_FLOAT, {4}, floats({4}, std::vector<float>(4, 1))};
     }},
    {"pool_kernel_zero", "MaxPool/float/2x2",
     [](GraphSpec& g) {
       set(g, "kernel_shape", Extents{0, 2});
     }},
    {"pool_kernel_missing", "MaxPool/float/2x2",
     [](GraphSpec& g) {
       std::erase_if(node(g).attributes, [](const Attribute& a) { return a.name == "kernel_shape"; });
     }},
    {"pool_stride_negative", "AveragePool/float/2x2",
     [](GraphSpec& g) {
       set(g, "strides", Extents{-2, 2});
     }},
    {"softmax_axis", "Softmax/float/last", [](GraphSpec& g) { set(g, "axis", int64_t{2}); }},
    {"softmax_axis_min", "Softmax/float/last", [](GraphSpec& g) { set(g, "axis", INT64_MIN); }},
    {"layer_norm_axis", "LayerNormalization/float/last", [](GraphSpec& g) { set(g, "axis", int64_t{7}); }},
    {"layer_norm_scale", "LayerNormalization/float/no_bias",
     [](GraphSpec& g) {
       input(g, 1) = {BP_DTYPE_FLOAT, {32}, floats({32}, std::vector<float>(32, 1))};
     }},
    {"batch_norm_scale", "BatchNormalization/float/rank4_2",
     [](GraphSpec& g) {
       input(g, 1) = {BP_DTYPE_FLOAT, {4}, floats({4}, std::vector<float>(4, 1))};
     }},
    {"reduce_axis", "ReduceSum/float/last", [](GraphSpec& g) { set_weight(g, 1, {3}); }},
    {"reduce_axis_twice", "ReduceSum/float/last",
     [](GraphSpec& g) {
       set_weight(g, 1, {2, -1});
     }},
    {"argmax_axis", "ArgMax/float/axis0", [](GraphSpec& g) { set(g, "axis", int64_t{-4}); }},
    {"transpose_perm", "Transpose/float/nhwc",
     [](GraphSpec& g) {
       set(g, "perm", Extents{0, 2, 2, 1});
     }},
    {"transpose_perm_range", "Transpose/float/nhwc",
     [](GraphSpec& g) {
       set(g, "perm", Extents{0, 2, 3, 4});
     }},
    {"transpose_perm_count", "Transpose/float/nhwc",
     [](GraphSpec& g) {
       set(g, "perm", Extents{1, 0});
     }},
    {"reshape_count", "Reshape/float/flat", [](GraphSpec& g) { set_weight(g, 1, {23}); }},
    {"reshape_two_guesses", "Reshape/float/guess",
     [](GraphSpec& g) {
       set_weight(g, 1, {-1, -1});
     }},
    {"reshape_minus_two", "Reshape/float/guess",
     [](GraphSpec& g) {
       set_weight(g, 1, {-2, 6});
     }},
    {"concat_axis", "Concat/float/rows", [](GraphSpec& g) { set(g, "axis", int64_t{2}); }},
    {"concat_extents", "Concat/float/rows",
     [](GraphSpec& g) {
       input(g, 1).extents = {4, 2};
     }},
    {"split_sizes", "Split/float/sizes",
     [](GraphSpec& g) {
       set_weight(g, 1, {2, 3, 5});
     }},
    {"split_negative", "Split/float/sizes",
     [](GraphSpec& g) {
       set_weight(g, 1, {-2, 3, 8});
     }},
    {"gather_axis", "Gather/float/embedding", [](GraphSpec& g) { set(g, "axis", int64_t{2}); }},
    {"gather_float_indices", "Gather/float/embedding", [](GraphSpec& g) { input(g, 1).dtype = BP_DTYPE_FLOAT; }},
    {"slice_axis", "Slice/float/axis", [](GraphSpec& g) { set_weight(g, 3, {3}); }},
    {"slice_step_zero", "Slice/float/steps",
     [](GraphSpec& g) {
       set_weight(g, 4, {0, 1});
     }},
    {"slice_counts", "Slice/float/plain", [](GraphSpec& g) { set_weight(g, 2, {4}); }},
    {"pad_count", "Pad/float/zeros",
     [](GraphSpec& g) {
       set_weight(g, 1, {0, 1});
     }},
    {"pad_mode", "Pad/float/zeros", [](GraphSpec& g) { set(g, "mode", std::string("mirror")); }},
    {"squeeze_axis", "Squeeze/float/some", [](GraphSpec& g) { set_weight(g, 1, {1}); }},
    {"unsqueeze_twice", "Unsqueeze/float/ends",
     [](GraphSpec& g) {
       set_weight(g, 1, {0, 0});
     }},
    {"expand_extents", "Expand/float/row",
     [](GraphSpec& g) {
       set_weight(g, 1, {3, 4});
     }},
    {"where_condition", "Where/float/same", [](GraphSpec& g) { input(g, 0).dtype = BP_DTYPE_FLOAT; }},
    {"cast_to_nothing", "Cast/float/to_6", [](GraphSpec& g) { set(g, "to", int64_t{999}); }},
    {"cast_to_differs", "Cast/float/to_6", [](GraphSpec& g) { output(g).dtype = BP_DTYPE_BOOL; }},
    {"depth_to_space_block", "DepthToSpace/float/dcr", [](GraphSpec& g) { set(g, "blocksize", int64_t{3}); }},
    {"depth_to_space_zero", "DepthToSpace/float/dcr", [](GraphSpec& g) { set(g, "blocksize", int64_t{0}); }},
    {"resize_mode", "Resize/float/nearest_up", [](GraphSpec& g) { set(g, "mode", std::string("cubist")); }},
    {"resize_scales", "Resize/float/nearest_up",
     [](GraphSpec& g) {
       input(g, 2).weight = floats({4}, {1, 1, -2, 2});
     }},
};

// Zeros for every input of the graph. Throws onnx::Malformed if the size of an input is undefined.
std::vector<onnx::Tensor> zeros_for(const GraphSpec& spec) {
  std::vector<onnx::Tensor> inputs;
  for (const uint32_t index : spec.inputs) {
    const ValueSpec& value = spec.values[index];
    inputs.push_back(
        {value.dtype, value.extents, std::vector<std::byte>(onnx::dense_bytes(value.dtype, value.extents))});
  }
  return inputs;
}

// Whether a call reports the graph as the plugin's own defect, or a check of a run fails, such as the one for writes
// outside its memory.
bool is_defect(const Answer& answer) {
  return answer.status == BP_INTERNAL;
}

Result check(Bench& bench, const Row& row) {
  Result result;
  const auto subject = make_subject(bench.device(), problem_of(row.op_case, bench.seed(), row.name), result);
  if (subject == nullptr) return result;
  GraphSpec spec = subject->graph->spec();
  row.change(spec);
  const Graph graph(std::move(spec));
  std::vector<Claim> claims;
  const auto defect = [](const Answer& answer) {
    return failed("a graph that breaks ONNX's rules ends in a defect of the plugin: " + answer.describe());
  };
  Answer answer = bench.device().coverage(graph, claims);
  if (is_defect(answer)) return defect(answer);
  if (!answer.ok()) return passed(1);
  const bool claimed = claims[0].answer != BP_ANSWER_NO;
  const auto program = Program::compile(bench.device(), graph, answer);
  if (is_defect(answer)) return defect(answer);
  if (program == nullptr) return passed(1);
  if (!claimed) return failed("the graph is not claimed, but compiles");
  std::vector<onnx::Tensor> inputs;
  try {
    inputs = zeros_for(graph.spec());
  } catch (const onnx::Malformed&) {
    return failed("a graph with an input of undefined size compiles");
  }
  std::vector<onnx::Tensor> outputs;
  answer = compute(bench.device(), graph, inputs, outputs);
  if (is_defect(answer)) return defect(answer);
  return answer.ok() ? failed("a graph that breaks ONNX's rules is claimed, compiles and runs") : passed(1);
}

// Gather with indices that are out of range, which only a run can detect.
Result gather_out_of_range(Bench& bench) {
  Result result;
  const auto subject =
      make_subject(bench.device(), problem_of("Gather/float/embedding", bench.seed(), "range"), result);
  if (subject == nullptr) return result;
  for (const int64_t bad : {int64_t{11}, int64_t{-12}, INT64_MAX, INT64_MIN}) {
    std::vector<onnx::Tensor> inputs = subject->inputs, outputs;
    std::copy_n(reinterpret_cast<const std::byte*>(&bad), sizeof bad, inputs[1].bytes.begin() + 3 * sizeof bad);
    const Answer answer = compute(bench.device(), *subject->graph, inputs, outputs);
    if (is_defect(answer))
      return failed(fmt::format("index {} into 11 rows ends in a defect of the plugin: {}", bad, answer.describe()));
    if (answer.ok()) return failed(fmt::format("index {} into 11 rows is accepted without an error", bad));
  }
  return passed(1);
}

}  // namespace

void add_negative(const Selection&, std::vector<Case>& out_cases) {
  for (const Row& row : kRows) {
    out_cases.push_back({fmt::format("negative/{}", row.name), [&row](Bench& bench) { return check(bench, row); }});
  }
  out_cases.push_back({"negative/gather_out_of_range", gather_out_of_range});
}

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// A tensor without elements costs nothing, whatever its other extents are. Every operator of the table except kOthers
// runs on such tensors, and must return a result or an error within kSeconds.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <map>
#include <set>

#include "runtime/operators.h"
#include "table.h"
#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40;
constexpr int64_t kLarge = int64_t{1} << 29;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSeconds = 1;
#else
constexpr double kSeconds = 0.1;
#endif

struct Operand {
  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  std::vector<int64_t> extents;
  std::vector<int64_t> values = {};  // if not empty, the operand is a weight with these values
};

struct Case {
  const char* op_type;  // prefixed with "DOMAIN::" unless the domain is ai.onnx
  std::vector<Operand> inputs;
  Attributes attributes = {};
  std::vector<bp_dtype_t> outputs = {BP_DTYPE_FLOAT};
};

Operand floats(std::vector<int64_t> extents) {
  return {BP_DTYPE_FLOAT, std::move(extents)};
}
Operand longs(std::vector<int64_t> extents) {
  return {BP_DTYPE_INT64, std::move(extents)};
}
Operand bytes(std::vector<int64_t> extents) {
  return {BP_DTYPE_UINT8, std::move(extents)};
}
Operand zeros(bp_dtype_t dtype, std::vector<int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  return {dtype, std::move(extents), std::vector<int64_t>(static_cast<size_t>(count))};
}
Operand values(std::vector<int64_t> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  return {BP_DTYPE_INT64, {count}, std::move(numbers)};
}
Operand value(int64_t number, bp_dtype_t dtype = BP_DTYPE_INT64) {
  return {dtype, {}, {number}};
}

const Operand kAbsent{BP_DTYPE_UNDEFINED, {}};
const Operand kScale = value(1, BP_DTYPE_FLOAT);
const Operand kZero = value(0, BP_DTYPE_UINT8);

using Ints = std::vector<int64_t>;
using Reals = std::vector<float>;

// Cases for operators whose inputs must have particular types or shapes.
std::vector<Case> cases() {
  const std::vector<bp_dtype_t> u8{BP_DTYPE_UINT8}, i64{BP_DTYPE_INT64}, two{BP_DTYPE_FLOAT, BP_DTYPE_FLOAT};
  const std::vector<bp_dtype_t> three{BP_DTYPE_FLOAT, BP_DTYPE_FLOAT, BP_DTYPE_FLOAT};
  const std::vector<bp_dtype_t> labelled{BP_DTYPE_INT64, BP_DTYPE_FLOAT};
  const Attributes window{{"kernel_shape", Ints{2}}};
  return {
      {"AffineGrid", {floats({0, 2, 3}), values({0, 1, kLarge, 1 << 20})}},
      {"Attention", {floats({kHuge, 1, 4, 0}), floats({kHuge, 1, 4, 0}), floats({kHuge, 1, 4, 0})}},
      {"AveragePool", {floats({0, kLarge, 8})}, window},
      {"GlobalAveragePool", {floats({1, 3, 0})}},
      {"GlobalMaxPool", {floats({1, 3, 0})}},
      {"BatchNormalization", {floats({kHuge, 0, 4}), floats({0}), floats({0}), floats({0}), floats({0})}},
      {"BatchNormalization",
       {floats({kHuge, 2, 0}), zeros(BP_DTYPE_FLOAT, {2}), zeros(BP_DTYPE_FLOAT, {2}), zeros(BP_DTYPE_FLOAT, {2}),
        zeros(BP_DTYPE_FLOAT, {2})},
       {{"training_mode", int64_t{1}}},
       three},
      {"BitCast", {floats({kHuge, 0})}, {{"to", int64_t{BP_DTYPE_INT32}}}, {BP_DTYPE_INT32}},
      {"BitShift", {bytes({kHuge, 0}), bytes({kHuge, 0})}, {{"direction", "LEFT"}}, u8},
      {"BlackmanWindow", {value(0)}},
      {"CausalConvWithState", {floats({kHuge, 0, 4}), floats({0, 1, 3})}, {}, two},
      {"CenterCropPad", {floats({kLarge, 0}), values({kLarge + 2, 0})}},
      {"Col2Im", {floats({0, 4 << 20, 3969}), values({64, 64}), values({2, 2})}},
      {"Compress", {floats({kHuge, 0}), {BP_DTYPE_BOOL, {0}}}, {{"axis", int64_t{1}}}},
      {"Conv", {floats({0, 2, kLarge}), zeros(BP_DTYPE_FLOAT, {2, 2, 3})}},
      {"ConvInteger", {bytes({0, 2, kLarge}), bytes({0, 2, 3})}, {}, {BP_DTYPE_INT32}},
      {"ConvTranspose", {floats({0, 2, kLarge}), floats({2, 0, 3})}},
      {"CumProd", {floats({kHuge, 0}), value(0)}},
      {"CumSum", {floats({kHuge, 0}), value(0)}},
      {"DFT", {floats({0, kLarge, 1})}},
      {"DeformConv", {floats({0, 2, 64, 64}), floats({0, 2, 3, 3}), floats({0, 18, 62, 62})}},
      {"DepthToSpace", {floats({0, 4, kLarge, 2})}, {{"blocksize", int64_t{2}}}},
      {"DequantizeLinear", {bytes({kHuge, 0}), kScale}},
      {"Einsum", {floats({kHuge, 0}), floats({0, kHuge})}, {{"equation", "ij,jk->"}}},
      {"Einsum", {floats({kHuge, 0}), floats({0, kHuge})}, {{"equation", "ij,jk->j"}}},
      {"Expand", {floats({kHuge, 0}), values({2, kHuge, 0})}},
      {"GRU",
       {floats({kHuge, 0, 4}), zeros(BP_DTYPE_FLOAT, {1, 9, 4}), zeros(BP_DTYPE_FLOAT, {1, 9, 3})},
       {{"hidden_size", int64_t{3}}}},
      {"Gather", {floats({kHuge, 0}), values({0, 1})}},
      {"GatherElements", {floats({kHuge, 0}), longs({kHuge, 0})}},
      {"GatherND", {floats({4, kHuge, 0}), {BP_DTYPE_INT64, {2, 1}, {0, 1}}}},
      {"Gemm", {floats({kHuge, 0}), floats({0, 0})}},
      {"GridSample", {floats({0, 2, 64, 64}), floats({0, kLarge, 64, 2})}},
      {"GroupNormalization", {floats({kHuge, 0, 4}), floats({0}), floats({0})}, {{"num_groups", int64_t{1}}}},
      {"HammingWindow", {value(0)}},
      {"HannWindow", {value(0)}},
      {"InstanceNormalization", {floats({kHuge, 0, 4}), floats({0}), floats({0})}},
      {"LRN", {floats({kHuge, 0, 4})}, {{"size", int64_t{3}}}},
      {"LSTM",
       {floats({kHuge, 0, 4}), zeros(BP_DTYPE_FLOAT, {1, 12, 4}), zeros(BP_DTYPE_FLOAT, {1, 12, 3})},
       {{"hidden_size", int64_t{3}}},
       three},
      {"LinearAttention",
       {floats({kHuge, 4, 0}), floats({kHuge, 4, 0}), floats({kHuge, 4, 0})},
       {{"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}, {"update_rule", "linear"}},
       two},
      {"LpPool", {floats({0, kLarge, 8})}, window},
      {"MatMul", {floats({kHuge, 0, 2, 3}), floats({kHuge, 0, 3, 2})}},
      {"MatMul", {floats({2, 2, 0}), floats({2, 0, 2})}},
      {"MaxPool", {floats({0, kLarge, 8})}, window},
      {"MaxPool", {floats({0, 1, kLarge})}, window},
      {"MaxRoiPool", {floats({0, kLarge, 64, 64}), floats({0, 5})}, {{"pooled_shape", Ints{2, 2}}}},
      {"MaxUnpool", {floats({0, 2, kLarge}), longs({0, 2, kLarge})}, {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}}},
      {"NegativeLogLikelihoodLoss", {floats({kHuge, 4, 0}), longs({kHuge, 0})}},
      {"NonMaxSuppression", {floats({kHuge, 0, 4}), floats({kHuge, 2, 0})}, {}, i64},
      {"NonMaxSuppression", {floats({1, 0, 4}), floats({1, kHuge, 0})}, {}, i64},
      {"OneHot", {longs({kHuge, 0}), value(4), zeros(BP_DTYPE_FLOAT, {2})}},
      {"Pad", {floats({kHuge, 0}), values({0, 0, 0, 0})}},
      {"Pad", {floats({kHuge, 0}), values({1, 0, 1, 0})}},
      {"QLinearConv", {bytes({0, 2, kLarge}), kScale, kZero, bytes({0, 2, 3}), kScale, kZero, kScale, kZero}, {}, u8},
      {"QLinearMatMul", {bytes({kHuge, 0}), kScale, kZero, bytes({0, 0}), kScale, kZero, kScale, kZero}, {}, u8},
      {"QuantizeLinear", {floats({kHuge, 0}), kScale, kZero}, {}, u8},
      {"RNN",
       {floats({kHuge, 0, 4}), zeros(BP_DTYPE_FLOAT, {1, 3, 4}), zeros(BP_DTYPE_FLOAT, {1, 3, 3})},
       {{"hidden_size", int64_t{3}}}},
      {"Range", {value(0), value(0), value(1)}, {}, i64},
      {"ReduceSum", {floats({kHuge, 0}), values({0, 1})}},
      {"ReduceSum", {floats({kHuge, 3, 0}), values({0, 2})}},
      {"ReduceMax", {floats({kHuge, 0, 3}), values({0, 1})}},
      {"Reshape", {floats({kHuge, 0}), values({0, kLarge})}, {{"allowzero", int64_t{1}}}},
      {"Resize", {floats({0, 2, kLarge, 4}), kAbsent, kAbsent, values({0, 2, 8, 8})}},
      {"ReverseSequence", {floats({kHuge, 0}), longs({0})}},
      {"RoiAlign", {floats({kHuge, 0, 8, 8}), floats({0, 4}), longs({0})}},
      {"RoiAlign", {floats({1, 0, 8, 8}), zeros(BP_DTYPE_FLOAT, {2, 4}), zeros(BP_DTYPE_INT64, {2})}},
      {"RotaryEmbedding", {floats({kHuge, 1, 0, 4}), floats({kHuge, 0, 2}), floats({kHuge, 0, 2})}},
      {"STFT", {floats({0, kLarge, 1}), value(128), kAbsent, value(512)}},
      {"ScatterElements", {floats({kHuge, 0}), longs({kHuge, 0}), floats({kHuge, 0})}},
      {"Slice", {floats({kHuge, 0}), values({1}), values({INT64_MAX}), values({0}), values({2})}},
      {"SoftmaxCrossEntropyLoss", {floats({kHuge, 4, 0}), longs({kHuge, 0})}, {}, two},
      {"SpaceToDepth", {floats({0, 1, kLarge, 2})}, {{"blocksize", int64_t{2}}}},
      {"Split", {floats({kHuge, 0})}, {}, two},
      {"StringNormalizer", {{BP_DTYPE_STRING, {1, 0}}}, {}, {BP_DTYPE_STRING}},
      {"TfIdfVectorizer",
       {longs({0, kHuge})},
       {{"mode", "TF"},
        {"min_gram_length", int64_t{1}},
        {"max_gram_length", int64_t{1}},
        {"max_skip_count", int64_t{0}},
        {"ngram_counts", Ints{0}},
        {"ngram_indexes", Ints{0}},
        {"pool_int64s", Ints{1}}}},
      {"Tile", {floats({kHuge, 0}), values({2, 2})}},
      {"TopK", {floats({kHuge, 0}), values({0})}, {}, {BP_DTYPE_FLOAT, BP_DTYPE_INT64}},
      {"TopK", {floats({kHuge, 0}), values({2})}, {{"axis", int64_t{0}}}, {BP_DTYPE_FLOAT, BP_DTYPE_INT64}},
      {"ai.onnx.ml::CategoryMapper", {longs({kHuge, 0})}, {}, {BP_DTYPE_STRING}},
      {"ai.onnx.ml::FeatureVectorizer", {floats({kHuge, 0})}, {{"inputdimensions", Ints{0}}}},
      {"ai.onnx.ml::Imputer", {floats({kHuge, 0})}, {{"imputed_value_floats", Reals{1}}}},
      {"ai.onnx.ml::LabelEncoder", {floats({kHuge, 0})}, {{"keys_floats", Reals{1}}, {"values_floats", Reals{2}}}},
      {"ai.onnx.ml::LinearClassifier",
       {floats({0, 2})},
       {{"coefficients", Reals{1, 2}}, {"intercepts", Reals{0}}, {"classlabels_ints", Ints{0, 1}}},
       labelled},
      {"ai.onnx.ml::LinearRegressor", {floats({0, 2})}, {{"coefficients", Reals{1, 2}}}},
      {"ai.onnx.ml::OneHotEncoder", {longs({kHuge, 0})}, {{"cats_int64s", Ints{1}}}},
      {"ai.onnx.ml::SVMClassifier",
       {floats({0, 1})},
       {{"coefficients", Reals{1, 1}}, {"rho", Reals{0}}, {"classlabels_ints", Ints{0, 1}}},
       labelled},
      {"ai.onnx.ml::SVMRegressor",
       {floats({0, 1})},
       {{"coefficients", Reals{1}}, {"support_vectors", Reals{1}}, {"rho", Reals{0}}, {"n_supports", int64_t{1}}}},
      {"ai.onnx.preview.training::Adagrad",
       {kScale, value(0), floats({kHuge, 0}), floats({kHuge, 0}), floats({kHuge, 0})},
       {},
       two},
      {"ai.onnx.preview.training::Adam",
       {kScale, value(0), floats({kHuge, 0}), floats({kHuge, 0}), floats({kHuge, 0}), floats({kHuge, 0})},
       {},
       three},
      {"ai.onnx.preview.training::Momentum",
       {kScale, value(0), floats({kHuge, 0}), floats({kHuge, 0}), floats({kHuge, 0})},
       {{"mode", "standard"}, {"alpha", 1.0f}, {"beta", 1.0f}, {"norm_coefficient", 0.0f}},
       two},
      {"com.microsoft::Attention",
       {floats({kHuge, 0, 4}), zeros(BP_DTYPE_FLOAT, {4, 12})},
       {{"num_heads", int64_t{1}}}},
      {"com.microsoft::DynamicQuantizeLSTM",
       {floats({kHuge, 0, 2}), zeros(BP_DTYPE_UINT8, {1, 2, 4}), zeros(BP_DTYPE_UINT8, {1, 1, 4}), kAbsent, kAbsent,
        kAbsent, kAbsent, kAbsent, zeros(BP_DTYPE_FLOAT, {1}), zeros(BP_DTYPE_UINT8, {1}), zeros(BP_DTYPE_FLOAT, {1}),
        zeros(BP_DTYPE_UINT8, {1})}},
      {"com.microsoft::DynamicQuantizeMatMul", {floats({kHuge, 0}), bytes({0, 0}), kScale}},
      {"com.microsoft::EmbedLayerNormalization",
       {{BP_DTYPE_INT32, {kLarge, 0}},
        kAbsent,
        zeros(BP_DTYPE_FLOAT, {2, 4}),
        zeros(BP_DTYPE_FLOAT, {2, 4}),
        kAbsent,
        zeros(BP_DTYPE_FLOAT, {4}),
        zeros(BP_DTYPE_FLOAT, {4})}},
      {"com.microsoft::FusedConv",
       {floats({0, 2, kLarge}), zeros(BP_DTYPE_FLOAT, {2, 2, 3})},
       {{"activation", "Relu"}}},
      {"com.microsoft::FusedGemm", {floats({kHuge, 0}), floats({0, 0})}, {{"activation", "Relu"}}},
      {"com.microsoft::GroupQueryAttention",
       {floats({0, kLarge, 4}),
        floats({0, kLarge, 4}),
        floats({0, kLarge, 4}),
        kAbsent,
        kAbsent,
        {BP_DTYPE_INT32, {0}},
        value(kLarge, BP_DTYPE_INT32)},
       {{"num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}},
       three},
      {"com.microsoft::MatMulIntegerToFloat", {bytes({kHuge, 0}), bytes({0, 0}), kScale, kScale}},
      {"com.microsoft::MatMulNBits",
       {floats({kLarge, 0, 16}), zeros(BP_DTYPE_UINT8, {2, 1, 8}), zeros(BP_DTYPE_FLOAT, {2})},
       {{"K", int64_t{16}}, {"N", int64_t{2}}, {"bits", int64_t{4}}, {"block_size", int64_t{16}}}},
      {"com.microsoft::MultiHeadAttention",
       {floats({kHuge, 0, 4}), floats({kHuge, 0, 4}), floats({kHuge, 0, 4})},
       {{"num_heads", int64_t{1}}}},
      {"com.microsoft::NhwcConv", {floats({0, kLarge, 4, 2}), zeros(BP_DTYPE_FLOAT, {2, 3, 3, 2})}},
      {"com.microsoft::QAttention",
       {bytes({kHuge, 0, 4}), zeros(BP_DTYPE_UINT8, {4, 12}), zeros(BP_DTYPE_FLOAT, {12}), kScale, kScale},
       {{"num_heads", int64_t{1}}}},
      {"com.microsoft::QLinearAdd",
       {bytes({kHuge, 0}), kScale, kZero, bytes({kHuge, 0}), kScale, kZero, kScale, kZero},
       {},
       u8},
      {"com.microsoft::QLinearAveragePool", {bytes({0, kLarge, 8}), kScale, kZero, kScale, kZero}, window, u8},
      {"com.microsoft::QLinearConcat", {kScale, kZero, bytes({kHuge, 0}), kScale, kZero}, {{"axis", int64_t{0}}}, u8},
      {"com.microsoft::QLinearGlobalAveragePool", {bytes({0, kLarge, 4, 4}), kScale, kZero, kScale, kZero}, {}, u8},
      {"com.microsoft::QLinearLeakyRelu", {bytes({kHuge, 0}), kScale, kZero, kScale, kZero}, {}, u8},
      {"com.microsoft::QLinearMul",
       {bytes({kHuge, 0}), kScale, kZero, bytes({kHuge, 0}), kScale, kZero, kScale, kZero},
       {},
       u8},
      {"com.microsoft::QLinearSigmoid", {bytes({kHuge, 0}), kScale, kZero, kScale, kZero}, {}, u8},
      {"com.microsoft::RotaryEmbedding",
       {floats({kHuge, 1, 0, 4}), longs({kHuge, 0}), zeros(BP_DTYPE_FLOAT, {2, 2}), zeros(BP_DTYPE_FLOAT, {2, 2})}},
  };
}

// Operators that cannot succeed on such tensors: they have no operands, or their operands are containers or scalars or
// are invalid if they are empty.
const std::set<std::string> kOthers = {"Constant",
                                       "ConcatFromSequence",
                                       "If",
                                       "ImageDecoder",
                                       "Loop",
                                       "MelWeightMatrix",
                                       "Scan",
                                       "SequenceAt",
                                       "SequenceConstruct",
                                       "SequenceEmpty",
                                       "SequenceErase",
                                       "SequenceInsert",
                                       "SequenceLength",
                                       "SequenceMap",
                                       "SplitToSequence",
                                       "ai.onnx.ml::CastMap",
                                       "ai.onnx.ml::DictVectorizer",
                                       "ai.onnx.ml::TreeEnsembleClassifier",  // needs at least one column
                                       "ai.onnx.ml::ZipMap"};

HostTensor empty(const Operand& operand) {
  const bool texts = operand.dtype == BP_DTYPE_STRING;
  return {operand.dtype, operand.extents, texts ? std::string(sizeof(int64_t), '\0') : std::string()};
}

// Runs a node of version `since` and returns whether it succeeded. It must not take long, even if it fails.
bool try_node(Plugin& plugin, const Case& c, uint32_t since, std::string* error = nullptr) {
  GraphBuilder b;
  std::vector<std::string> names, results;
  std::vector<HostTensor> inputs;
  for (const Operand& operand : c.inputs) {
    const std::string name = "x" + std::to_string(names.size());
    names.push_back(operand.dtype == BP_DTYPE_UNDEFINED ? "" : name);
    if (operand.dtype == BP_DTYPE_UNDEFINED) continue;
    if (!operand.values.empty()) {
      if (operand.dtype == BP_DTYPE_FLOAT)
        b.weight<float>(name, operand.dtype, operand.extents, {operand.values.begin(), operand.values.end()});
      else if (operand.dtype == BP_DTYPE_INT64)
        b.weight<int64_t>(name, operand.dtype, operand.extents, operand.values);
      else if (operand.dtype == BP_DTYPE_INT32)
        b.weight<int32_t>(name, operand.dtype, operand.extents, {operand.values.begin(), operand.values.end()});
      else
        b.weight<uint8_t>(name, operand.dtype, operand.extents, {operand.values.begin(), operand.values.end()});
      continue;
    }
    b.input(name, operand.dtype, operand.extents);
    inputs.push_back(empty(operand));
  }
  for (size_t o = 0; o < c.outputs.size(); ++o) results.push_back("y" + std::to_string(o));
  b.node(c.op_type, since, names, results, c.outputs[0], c.attributes);
  for (size_t o = 0; o < c.outputs.size(); ++o) {
    if (o > 0) b.type_of_unknown_rank(results[o], c.outputs[o]);
    b.output(results[o]);
  }
  const double begin = cpu_seconds();
  Compiled program(plugin, b.graph());
  const Outcome run = program.run(inputs);
  const double seconds = cpu_seconds() - begin;
  std::string extents;
  for (const Operand& operand : c.inputs) {
    extents += " [";
    for (int64_t extent : operand.extents) extents += std::to_string(extent) + ",";
    extents += ']';
  }
  EXPECT_LT(seconds, kSeconds) << c.op_type << extents << ": " << run.text;
  EXPECT_NE(run.status, BP_INTERNAL) << c.op_type << extents << ": " << run.text;
  if (error != nullptr) *error = run.text;
  return run.status == BP_OK;
}

bp_dtype_t result_of(std::string_view op_type, bp_dtype_t operand) {
  static const std::set<std::string_view> kIndices = {"Shape", "Size", "ArgMax", "ArgMin", "NonZero"};
  static const std::set<std::string_view> kTruths = {
      "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "IsNaN",
      "IsInf", "Not",     "RegexFullMatch", "And",  "Or",          "Xor"};
  if (kIndices.contains(op_type)) return BP_DTYPE_INT64;
  if (op_type == "Multinomial") return BP_DTYPE_INT32;      // the attribute dtype is not set
  if (op_type == "ConstantOfShape") return BP_DTYPE_FLOAT;  // the attribute value is not set
  return kTruths.contains(op_type) ? BP_DTYPE_BOOL : operand;
}

class EmptySequences : public ::testing::Test {
 protected:
  Plugin plugin{"2", {{"max_bytes", std::to_string(int64_t{1} << 28)}}};

  Outcome run(GraphBuilder& b, const std::vector<HostTensor>& inputs) {
    const double begin = cpu_seconds();
    Outcome outcome = Compiled(plugin, b.graph()).run(inputs);
    EXPECT_LT(cpu_seconds() - begin, kSeconds) << outcome.text;
    return outcome;
  }
};

TEST_F(EmptySequences, AreSplitOrRefusedAtOnce) {
  for (int64_t axis : {0, 1}) {
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, {kHuge, 0}).sequence("s", BP_DTYPE_FLOAT);
    b.node("SplitToSequence", 24, {"x"}, {"s"}, BP_DTYPE_FLOAT, {{"axis", axis}});
    b.node("SequenceLength", 11, {"s"}, {"n"}, BP_DTYPE_INT64).output("n");
    const Outcome outcome = run(b, {empty(floats({kHuge, 0}))});
    EXPECT_EQ(outcome.status, axis == 0 ? BP_RESOURCE_EXHAUSTED : BP_OK) << outcome.text;
  }
}

TEST_F(EmptySequences, AreJoinedAtOnce) {
  for (int64_t axis : {0, 1}) {
    for (int64_t new_axis : {0, 1}) {
      GraphBuilder b;
      b.input("x", BP_DTYPE_FLOAT, {kHuge, 0}).sequence("s", BP_DTYPE_FLOAT);
      b.node("SequenceConstruct", 11, {"x", "x"}, {"s"});
      b.node("ConcatFromSequence", 11, {"s"}, {"y"}, BP_DTYPE_FLOAT, {{"axis", axis}, {"new_axis", new_axis}});
      b.output("y");
      const Outcome outcome = run(b, {empty(floats({kHuge, 0}))});
      EXPECT_EQ(outcome.status, BP_OK) << outcome.text;
    }
  }
}

TEST_F(EmptySequences, AreNotScannedForEver) {
  GraphBuilder body;
  body.input("s", BP_DTYPE_FLOAT, {}).input("x", BP_DTYPE_FLOAT, {0}).node("Neg", 13, {"s"}, {"t"}).output("t");
  GraphBuilder b;
  b.input("s", BP_DTYPE_FLOAT, {}).input("x", BP_DTYPE_FLOAT, {kHuge, 0});
  b.node("Scan", 25, {"s", "x"}, {"y"}, BP_DTYPE_FLOAT, {{"body", &body}, {"num_scan_inputs", int64_t{1}}}).output("y");
  const Outcome outcome = run(b, {HostTensor::of<float>(BP_DTYPE_FLOAT, {}, {1}), empty(floats({kHuge, 0}))});
  EXPECT_EQ(outcome.status, BP_INVALID_ARGUMENT) << outcome.text;
}

TEST(EmptyTensors, CostNothingInAnyOperator) {
  Plugin plugin("2", {{"max_bytes", std::to_string(int64_t{1} << 28)}});
  std::map<std::string, uint32_t> newest;
  for (const Row& row : operators().rows()) {
    std::string name(row.op_type);
    if (!row.domain.empty()) name = std::string(row.domain) + "::" + name;
    newest[name] = std::max(newest[name], row.since_version);
  }
  std::set<std::string> ran;
  const std::vector<std::vector<int64_t>> shapes = {{kHuge, 0},       {0, kHuge},       {kLarge, kLarge, 0},
                                                    {kHuge, 0, 4, 4}, {0, 2, kHuge, 3}, {2, kHuge, 0}};
  for (const auto& [name, since] : newest) {
    const std::string op_type = name.substr(name.find("::") == std::string::npos ? 0 : name.find("::") + 2);
    for (bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_INT64, BP_DTYPE_BOOL, BP_DTYPE_STRING, BP_DTYPE_UINT8}) {
      for (size_t arity = 1; arity <= 3; ++arity) {
        for (const std::vector<int64_t>& shape : shapes) {
          Case c{name.c_str(), std::vector<Operand>(arity, {dtype, shape}), {}, {result_of(op_type, dtype)}};
          if (try_node(plugin, c, since)) ran.insert(name);
        }
      }
    }
  }
  for (const Case& c : cases()) {
    std::string error;
    EXPECT_TRUE(try_node(plugin, c, newest[c.op_type], &error)) << c.op_type << ": " << error;
    ran.insert(c.op_type);
  }
  for (const auto& [name, since] : newest) {
    EXPECT_NE(ran.contains(name), kOthers.contains(name)) << name;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 512 << 10);  // both in KiB
}

}  // namespace
}  // namespace backplane::cpu::testing

// SPDX-License-Identifier: Apache-2.0
#include "kernels/float16/in_float.h"

#include <algorithm>
#include <mutex>

#include "kernels/common/halves.h"
#include "kernels/common/support.h"
#include "kernels/float16/in_float_steps.h"
#include "runtime/threads.h"

namespace backplane::cpu {
namespace {

enum Kind { kWhole, kElementwise };
struct Operator {
  std::string_view domain;
  std::string_view op_type;
  uint32_t weights = 0;  // bits of the inputs of which the kernel for FLOAT may keep a form of its own
  Kind kind = kWhole;
};
constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr Operator kOperators[] = {
    {"", "Abs", 0, kElementwise},
    {"", "Acos", 0, kElementwise},
    {"", "Acosh", 0, kElementwise},
    {"", "Add", 0, kElementwise},
    {"", "ArgMax"},
    {"", "ArgMin"},
    {"", "Asin", 0, kElementwise},
    {"", "Asinh", 0, kElementwise},
    {"", "Atan", 0, kElementwise},
    {"", "Atanh", 0, kElementwise},
    {"", "Attention"},
    {"", "AveragePool"},
    {"", "BatchNormalization"},
    {"", "Ceil", 0, kElementwise},
    {"", "Celu", 0, kElementwise},
    {"", "Clip", 0, kElementwise},
    {"", "Conv", 0b010},
    {"", "ConvTranspose", 0b010},
    {"", "Cos", 0, kElementwise},
    {"", "Cosh", 0, kElementwise},
    {"", "CumSum"},
    {"", "DeformConv", 0b010},
    {"", "DFT"},
    {"", "Div", 0, kElementwise},
    {"", "Einsum"},
    {"", "Elu", 0, kElementwise},
    {"", "Equal", 0, kElementwise},
    {"", "Erf", 0, kElementwise},
    {"", "Exp", 0, kElementwise},
    {"", "Floor", 0, kElementwise},
    {"", "GRU", 0b110},
    {"", "Gelu", 0, kElementwise},
    {"", "Gemm", 0b010},
    {"", "GlobalAveragePool"},
    {"", "GlobalLpPool"},
    {"", "GlobalMaxPool"},
    {"", "Greater", 0, kElementwise},
    {"", "GreaterOrEqual", 0, kElementwise},
    {"", "GridSample"},
    {"", "GroupNormalization"},
    {"", "HardSigmoid", 0, kElementwise},
    {"", "HardSwish", 0, kElementwise},
    {"", "Hardmax"},
    {"", "InstanceNormalization"},
    {"", "LRN"},
    {"", "LSTM", 0b110},
    {"", "LayerNormalization"},
    {"", "LeakyRelu", 0, kElementwise},
    {"", "Less", 0, kElementwise},
    {"", "LessOrEqual", 0, kElementwise},
    {"", "Log", 0, kElementwise},
    {"", "LogSoftmax"},
    {"", "LpNormalization"},
    {"", "LpPool"},
    {"", "MatMul", 0b010},
    {"", "Max", 0, kElementwise},
    {"", "MaxPool"},
    {"", "Mean", 0, kElementwise},
    {"", "MeanVarianceNormalization"},
    {"", "Min", 0, kElementwise},
    {"", "Mish", 0, kElementwise},
    {"", "Mod", 0, kElementwise},
    {"", "Mul", 0, kElementwise},
    {"", "Neg", 0, kElementwise},
    {"", "PRelu", 0, kElementwise},
    {"", "Pow", 0, kElementwise},
    {"", "RMSNormalization"},
    {"", "RNN", 0b110},
    {"", "Reciprocal", 0, kElementwise},
    {"", "ReduceL1"},
    {"", "ReduceL2"},
    {"", "ReduceLogSum"},
    {"", "ReduceLogSumExp"},
    {"", "ReduceMax"},
    {"", "ReduceMean"},
    {"", "ReduceMin"},
    {"", "ReduceProd"},
    {"", "ReduceSum"},
    {"", "ReduceSumSquare"},
    {"", "Relu", 0, kElementwise},
    {"", "Resize"},
    {"", "RoiAlign"},
    {"", "RotaryEmbedding"},
    {"", "Round", 0, kElementwise},
    {"", "STFT"},
    {"", "Selu", 0, kElementwise},
    {"", "Shrink", 0, kElementwise},
    {"", "Sigmoid", 0, kElementwise},
    {"", "Sign", 0, kElementwise},
    {"", "SimplifiedLayerNormalization"},
    {"", "Sin", 0, kElementwise},
    {"", "Sinh", 0, kElementwise},
    {"", "Softmax"},
    {"", "Softplus", 0, kElementwise},
    {"", "Softsign", 0, kElementwise},
    {"", "Sqrt", 0, kElementwise},
    {"", "Sub", 0, kElementwise},
    {"", "Sum", 0, kElementwise},
    {"", "Swish", 0, kElementwise},
    {"", "Tan", 0, kElementwise},
    {"", "Tanh", 0, kElementwise},
    {"", "ThresholdedRelu", 0, kElementwise},
    {"", "TopK"},
    {kMicrosoft, "BiasGelu"},
    {kMicrosoft, "FastGelu"},
    {kMicrosoft, "FusedConv", 0b010},
    {kMicrosoft, "FusedGemm", 0b010},
    {kMicrosoft, "FusedMatMul", 0b010},
    {kMicrosoft, "Gelu"},
    {kMicrosoft, "MatMulNBits", 0b1100},
    {kMicrosoft, "QuickGelu"},
    {kMicrosoft, "RotaryEmbedding"},
    {kMicrosoft, "SimplifiedLayerNormalization"},
    {kMicrosoft, "SkipLayerNormalization"},
    {kMicrosoft, "SkipSimplifiedLayerNormalization"},
};

const Operator* find_in_float(const Node& node) {
  const auto* found = std::ranges::find_if(
      kOperators, [&](const Operator& o) { return o.op_type == node.op_type() && o.domain == node.domain(); });
  return found == std::end(kOperators) ? nullptr : found;
}

// The graph with FLOAT in place of the 16-bit types.
class FloatGraph {
 public:
  explicit FloatGraph(const bp_graph_t& graph) : graph_(graph) {
    for (uint32_t i = 0; i < graph.type_count; ++i) {
      bp_type_t& type = types_.emplace_back(*bp_graph_type(&graph, i));
      if (is_half(type.dtype)) type.dtype = BP_DTYPE_FLOAT;
    }
    graph_.types = types_.data();
    graph_.type_stride = sizeof(bp_type_t);
  }
  const bp_graph_t& graph() const { return graph_; }

 private:
  bp_graph_t graph_;
  std::vector<bp_type_t> types_;
};

FloatBlock floats_of(const Tensor& halves) {
  const int64_t n = halves.shape.elements();
  Block block = allocate_pages(n * static_cast<int64_t>(sizeof(float)));
  parallel(n, kCheapGrain, [&](int64_t begin, int64_t end) {
    widen(halves.dtype, halves.as<std::byte>() + 2 * begin, reinterpret_cast<float*>(block.get()) + begin, end - begin);
  });
  return std::make_shared<const Block>(std::move(block));
}

// Known weights as floats, kept with the node: always at one address, by which kernels find what they made of them.
class FloatWeights {
 public:
  FloatBlock get(const Tensor& halves) {
    if (halves.passing) return floats_of(halves);
    std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
      if (entry.data == halves.data && entry.shape == halves.shape) return entry.floats;
    entries_.push_back({halves.data, halves.shape, floats_of(halves)});
    return entries_.back().floats;
  }

 private:
  struct Entry {
    const void* data;
    Shape shape;
    FloatBlock floats;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

class InFloatKernel final : public Kernel {
 public:
  InFloatKernel(std::unique_ptr<Kernel> inner, const Node& node, const Operator& op)
      : inner_(std::move(inner)), weights_(op.weights), kind_(op.kind) {
    for (uint32_t i = 0; i < node.output_count(); ++i) rounds_.push_back(is_half(node.output_type(i).dtype));
  }

  Plan plan(std::span<const Tensor> inputs) const override {
    std::vector<Tensor> floats(inputs.begin(), inputs.end());
    std::vector<Operand> operands(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      floats[i].format = Format::kDense;
      if (!is_half(inputs[i].dtype)) continue;
      floats[i].dtype = BP_DTYPE_FLOAT;
      operands[i].converts = true;
      if (inputs[i].data == nullptr) continue;
      operands[i].known = keeps(i) ? kept_.get(inputs[i]) : floats_of(inputs[i]);
      floats[i].data = operands[i].known->get();
      floats[i].passing = inputs[i].passing || !keeps(i);
    }
    Plan plan = with_dense_operands(inner_->plan(floats), floats);
    if (!plan.step) return plan;
    if (kind_ == kElementwise) {
      if (auto step = piecewise(inputs, floats, operands, plan.shapes[0])) {
        plan.step = std::move(step);
        return plan;
      }
    }
    std::vector<bool> rounds = rounds_;
    rounds.resize(plan.shapes.size(), false);
    plan.packed = -1;
    for (size_t i = 0; i < operands.size(); ++i)
      if (keeps(i) && operands[i].known) plan.packed = static_cast<int>(i);
    plan.step = whole_step(std::move(plan.step), std::move(operands), floats, plan.shapes, rounds);
    return plan;
  }
  bool packs(size_t input) const override { return keeps(input); }

 private:
  bool keeps(size_t input) const { return input < 32 && (weights_ >> input & 1) != 0; }

  // Null where operands are broadcast otherwise than one element, or are small enough to be taken whole.
  std::unique_ptr<Step> piecewise(std::span<const Tensor> inputs, std::span<const Tensor> floats,
                                  const std::vector<Operand>& operands, const Shape& shape) const {
    const int64_t n = shape.elements();
    if (n <= kPiece || inputs.size() > kMaxPieceInputs) return nullptr;
    int inplace = -1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].present()) continue;
      const bool whole = inputs[i].shape == shape;
      if (!whole && inputs[i].shape.elements() != 1) return nullptr;
      if (whole && inplace < 0 && operands[i].converts && !operands[i].known && rounds_[0])
        inplace = static_cast<int>(i);
    }
    auto plan_of = [&](int64_t count) -> std::unique_ptr<Step> {
      std::vector<Tensor> pieces(floats.begin(), floats.end());
      for (size_t i = 0; i < pieces.size(); ++i)
        if (pieces[i].present() && inputs[i].shape.elements() == 1)
          pieces[i].shape = {};
        else
          pieces[i] = {pieces[i].dtype, {count}, nullptr};  // values of another piece each time
      Plan plan = inner_->plan(pieces);
      const bool fits = plan.step && plan.shapes.size() == 1 && plan.shapes[0] == Shape{count} &&
                        plan.step->scratch_bytes() == 0 && plan.step->alias() < 0;
      return fits ? std::move(plan.step) : nullptr;
    };
    auto piece = plan_of(kPiece);
    auto rest = plan_of(n % kPiece == 0 ? 1 : n % kPiece);
    if (!piece || !rest) return nullptr;
    return piecewise_step(std::move(piece), std::move(rest), operands, inplace);
  }

  std::unique_ptr<Kernel> inner_;
  uint32_t weights_;
  Kind kind_;
  std::vector<bool> rounds_;
  mutable FloatWeights kept_;
};

}  // namespace

std::unique_ptr<Kernel> create_in_float(const Row& row, const Node& node) {
  bool has_half = false;
  for (uint32_t i = 0; i < node.input_count(); ++i) has_half = has_half || is_half(node.input_type(i).dtype);
  const Operator* found = has_half && !reference_only() ? find_in_float(node) : nullptr;
  if (found == nullptr) return nullptr;
  const FloatGraph floats(node.graph());
  return std::make_unique<InFloatKernel>(row.create(Node(floats.graph(), node.index())), node, *found);
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
#include "kernels/float16/compute_in_fp32.h"

#include <algorithm>
#include <mutex>

#include "kernels/common/float16_array.h"
#include "kernels/common/support.h"
#include "kernels/float16/compute_in_fp32_steps.h"
#include "runtime/dense_plan.h"
#include "runtime/graph_copy.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {
namespace {

// A copy of a graph with FLOAT in place of the 16-bit float types.
class FloatGraph {
 public:
  explicit FloatGraph(const bp_graph_t& graph) : graph_(copy_graph(graph)) {
    for (uint32_t i = 0; i < graph.type_count; ++i) {
      bp_type_t& type = types_.emplace_back(copy_type(graph, i));
      if (is_16_bit_float(type.dtype)) type.dtype = BP_DTYPE_FLOAT;
    }
    graph_.types = types_.data();
    graph_.type_stride = sizeof(bp_type_t);
  }
  const bp_graph_t& graph() const { return graph_; }

 private:
  bp_graph_t graph_;
  std::vector<bp_type_t> types_;
};

FloatBlock floats_of(const Tensor& tensor) {
  const int64_t n = tensor.shape.elements();
  Block block = allocate_pages(n * static_cast<int64_t>(sizeof(float)));
  parallel(n, kCheapGrain, [&](int64_t begin, int64_t end) {
    widen(tensor.dtype, tensor.as<std::byte>() + 2 * begin, reinterpret_cast<float*>(block.get()) + begin, end - begin);
  });
  return std::make_shared<const Block>(std::move(block));
}

// Known weights converted to floats, kept with the node so that their addresses do not change: kernels look up packed
// weights by the address of the floats.
class FloatWeights {
 public:
  FloatBlock get(const Tensor& tensor) {
    if (tensor.transient) return floats_of(tensor);
    std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
      if (entry.data == tensor.data && entry.shape == tensor.shape) return entry.floats;
    entries_.push_back({tensor.data, tensor.shape, floats_of(tensor)});
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

class Fp32Kernel final : public Kernel {
 public:
  Fp32Kernel(std::unique_ptr<Kernel> inner, const Node& node, const Row& row)
      : inner_(std::move(inner)), weights_(row.weights), by_elements_(row.half == HalfRule::kFp32Elements) {
    multiplies_bf16_ = processor().amx;  // bf16 values lose nothing when they are rounded to bf16
    for (uint32_t i = 0; i < node.input_count(); ++i)
      multiplies_bf16_ = multiplies_bf16_ && node.input_type(i).dtype != BP_DTYPE_FLOAT16;
    for (uint32_t i = 0; i < node.output_count(); ++i) rounds_.push_back(is_16_bit_float(node.output_type(i).dtype));
  }

  Plan plan(const PlanContext& context, std::span<const Tensor> inputs) const override {
    std::vector<Tensor> floats(inputs.begin(), inputs.end());
    std::vector<Operand> operands(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      floats[i].format = Format::kDense;
      if (!is_16_bit_float(inputs[i].dtype)) continue;
      floats[i].dtype = BP_DTYPE_FLOAT;
      operands[i].converts = true;
      if (inputs[i].data == nullptr) continue;
      operands[i].known = keeps(i) ? kept_.get(inputs[i]) : floats_of(inputs[i]);
      floats[i].data = operands[i].known->get();
      floats[i].transient = inputs[i].transient || !keeps(i);
    }
    PlanContext inner = context;
    inner.bf16 = multiplies_bf16_;
    Plan plan = with_dense_operands(context, inner_->plan(inner, floats), floats);
    if (!plan.step) return plan;
    if (by_elements_) {
      if (auto step = piecewise(context, inputs, floats, operands, plan.shapes[0])) {
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

  // Returns null if the result is too small or there are too many inputs, if an input is broadcast and has more than
  // one element, or if the kernel cannot compute pieces on their own.
  std::unique_ptr<Step> piecewise(const PlanContext& context, std::span<const Tensor> inputs,
                                  std::span<const Tensor> floats, const std::vector<Operand>& operands,
                                  const Shape& shape) const {
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
          pieces[i] = {pieces[i].dtype, {count}, nullptr};  // not known: each piece has different values
      Plan plan = inner_->plan(context, pieces);
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
  bool by_elements_;
  bool multiplies_bf16_;
  std::vector<bool> rounds_;
  mutable FloatWeights kept_;
};

}  // namespace

std::unique_ptr<Kernel> create_in_fp32(const Row& row, const Node& node) {
  const FloatGraph floats(node.graph());
  return std::make_unique<Fp32Kernel>(row.create(Node(floats.graph(), node.index(), node.operators())), node, row);
}

}  // namespace backplane::cpu

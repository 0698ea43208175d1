// SPDX-License-Identifier: Apache-2.0
// com.microsoft QAttention: Attention whose input and weights are 8-bit quantized values. Queries, keys and values are
// scaled sums of their products; everything after that is computed in floats.
#include "kernels/attention/combined_attention.h"
#include "kernels/common/function_kernel.h"
#include "kernels/quantized/integer_products.h"
#include "runtime/memory.h"

namespace backplane::cpu {

namespace {

enum Slot : size_t { kInput, kWeights, kBias, kInputScale, kWeightScale, kMask, kInputZero, kWeightZero, kPast };

CombinedInputs inputs_of(Tensors in) {
  return {at(in, kBias), at(in, kMask), at(in, kPast), {}};
}

void run(const IntegerProducts& products, const CombinedAttention& c, Tensors in, Tensors out, void* scratch) {
  const ZeroPointVector zero(at(in, kInputZero));
  const int64_t bytes = align_up(product({c.rows(), c.width, int64_t{sizeof(float)}}));
  auto* rest = static_cast<std::byte*>(scratch) + bytes;
  products.run({in[kInput], static_cast<float>(scalar(in[kInputScale])), zero.values()[0]}, in[kWeights],
               {in[kWeightScale], at(in, kWeightZero), in[kBias]}, {BP_DTYPE_FLOAT, Shape{c.rows(), c.width}, scratch},
               rest);
  c.run(static_cast<const float*>(scratch), inputs_of(in), out[0], at(out, 1), rest);
}

Plan plan(const PlanContext& context, const MultiHeadOptions& options, Tensors in, PackedWeights& packed) {
  std::string error;
  auto fitted = fit_combined(options, in[kInput].shape, in[kWeights].shape, inputs_of(in), error);
  if (!fitted) return fail(error);
  fitted->heads.plain = context.reference;
  const auto has = [&](size_t slot, int64_t most) {
    const int64_t count = at(in, slot).shape.elements();
    return !at(in, slot).present() || count == 1 || count == most;
  };
  for (size_t slot : {kInputScale, kInputZero})
    if (!has(slot, 1))
      return fail("input " + std::to_string(slot) + " " + to_string(in[slot].shape) + " must have one element");
  for (size_t slot : {kWeightScale, kWeightZero})
    if (!has(slot, fitted->width))
      return fail("input " + std::to_string(slot) + " " + to_string(in[slot].shape) + " must have 1 element or " +
                  std::to_string(fitted->width));
  const auto size = matmul_size(in[kInput].shape, in[kWeights].shape, &error);
  if (!size) return fail(error);
  IntegerProducts products(context, *size, in[kWeights], packed);
  const int64_t rows_bytes = align_up(product({fitted->rows(), fitted->width, int64_t{sizeof(float)}}));
  const int64_t rest =
      std::max(products.scratch_bytes(), attention_scratch(context.threads, fitted->heads.size, sizeof(float)));
  const bool is_packed = products.is_packed();
  Plan plan = make_plan(fitted->shapes(),
                        [products = std::move(products), c = *fitted](Tensors inputs, Tensors outputs, void* scratch) {
                          run(products, c, inputs, outputs, scratch);
                        },
                        {.scratch_bytes = rows_bytes + rest});
  if (is_packed) plan.packed = kWeights;
  return plan;
}

Verdict supports(const Node& node) {
  constexpr bp_dtype_set_t kReals = just(BP_DTYPE_FLOAT) | just(BP_DTYPE_FLOAT16),
                           kBytes = just(BP_DTYPE_INT8) | just(BP_DTYPE_UINT8);
  if (Verdict v =
          accepts(node, 5, {kBytes, kBytes, kReals, kReals, kReals, just(BP_DTYPE_INT32), kBytes, kBytes, kReals});
      !v)
    return v;
  if (node.has_input(kInputZero))
    if (Verdict v = same_type(node, kInput, kInputZero); !v) return v;
  if (node.has_input(kWeightZero))
    if (Verdict v = same_type(node, kWeights, kWeightZero); !v) return v;
  for (uint32_t slot : {kInputScale, kWeightScale, kPast})
    if (node.has_input(slot))
      if (Verdict v = same_type(node, kBias, slot); !v) return v;
  return check_multi_head(node);
}

class QAttention final : public Kernel {
 public:
  explicit QAttention(const Node& node) : options_(multi_head_options(node)) {}
  Plan plan(const PlanContext& context, Tensors inputs) const override {
    return cpu::plan(context, options_, inputs, packed_);
  }
  bool packs(size_t input) const override { return input == kWeights; }

 private:
  MultiHeadOptions options_;
  mutable PackedWeights packed_;
};

std::unique_ptr<Kernel> create(const Node& node) {
  return std::make_unique<QAttention>(node);
}

}  // namespace

[[gnu::cold]] std::span<const Row> qattention_rows() {
  static constexpr Row kRows[] = {
      {kMicrosoft, "QAttention", 1, supports, create},
  };
  return kRows;
}

}  // namespace backplane::cpu

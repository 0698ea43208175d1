// SPDX-License-Identifier: Apache-2.0
// Matrix products of com.microsoft that include other operations: FusedMatMul (transposition, scaling),
// DynamicQuantizeMatMul and MatMulIntegerToFloat (products of 8-bit integers with float results).
#include <optional>

#include "kernels/common/function_kernel.h"
#include "kernels/float16/compute_type.h"
#include "kernels/matmul/matmul.h"
#include "kernels/onednn/onednn.h"
#include "kernels/quantized/integer_products.h"
#include "kernels/quantized/quantize.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

// ---- FusedMatMul

struct Fused {
  float alpha;
  bool a_transposed, b_transposed;
};

template <class C>
void run_fused(const Fused& f, const MatMulSize& s, Tensors in, Tensors out) {
  std::vector<C> a_store, b_store, y_store;
  const C *a = as_compute(in[0], a_store), *b = as_compute(in[1], b_store);
  C* y = result_buffer(out[0], y_store);
  parallel(s.a_offsets.size(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const C* left = a + s.a_offsets[i] * s.m * s.k;
      const C* right = b + s.b_offsets[i] * s.k * s.n;
      C* to = y + i * s.m * s.n;
      if constexpr (std::is_same_v<C, float>) {
        sgemm(s.m, s.n, s.k, f.alpha, {left, f.a_transposed ? s.m : s.k, f.a_transposed},
              {right, f.b_transposed ? s.k : s.n, f.b_transposed}, 0, to, s.n);
      } else {
        multiply<C>(
            s.m, s.n, s.k,
            [&](int64_t row, int64_t at) { return f.a_transposed ? left[at % s.k * s.m + row] : left[at]; },
            [&](int64_t column, int64_t at) { return f.b_transposed ? right[column * s.k + at / s.n] : right[at]; },
            [&](int64_t, int64_t, int64_t at, C sum) { to[at] = static_cast<C>(f.alpha) * sum; });
      }
    }
  });
  store_result(out[0], y_store);
}

Verdict supports_fused(const Node& node) {
  if (Verdict v = accepts(node, 2, {kFloatTypes, kFloatTypes}); !v) return v;
  for (const char* name : {"transBatchA", "transBatchB"})
    if (node.attr(name, int64_t{0}) != 0)
      return no(BP_REASON_ATTRIBUTE, std::string(name) + " is set, which is not supported");
  return same_type(node, 0, 1);
}

std::unique_ptr<Kernel> create_fused(const Node& node) {
  const Fused f{node.attr("alpha", 1.0f), node.attr("transA", int64_t{0}) != 0, node.attr("transB", int64_t{0}) != 0};
  return make_kernel([f](Tensors in) -> Plan {
    // Swap the extents of transposed operands. The attributes do not apply to one-dimensional operands.
    Fused own = f;
    const auto transposed_back = [](Shape shape, bool& transposed) {
      transposed = transposed && shape.rank() > 1;
      if (transposed) std::swap(shape[shape.rank() - 1], shape[shape.rank() - 2]);
      return shape;
    };
    const Shape a = transposed_back(in[0].shape, own.a_transposed), b = transposed_back(in[1].shape, own.b_transposed);
    std::string error;
    std::optional<MatMulSize> size = matmul_size(a, b, &error);
    if (!size) return fail(error);
    // With a single B, matmul_size joins the matrices A of a batch into one tall matrix. Transposed matrices cannot be
    // joined, so separate them again.
    if (own.a_transposed && size->a_offsets.size() == 1 && a.rank() > 2 && size->shape.elements() > 0) {
      const int64_t batch = a.elements(0, a.rank() - 2);
      size->m = a[a.rank() - 2];
      size->a_offsets.add_axis(batch, batch);
      size->b_offsets.add_axis(batch, 1);
    }
    Shape shape = size->shape;
    return make_plan({shape}, [own, s = *size](Tensors inputs, Tensors outputs) {
      if (inputs[0].dtype == BP_DTYPE_DOUBLE)
        run_fused<double>(own, s, inputs, outputs);
      else
        run_fused<float>(own, s, inputs, outputs);
    });
  });
}

// ---- DynamicQuantizeMatMul, MatMulIntegerToFloat

void run_dynamic(const IntegerProducts& products, Tensors in, Tensors out, void* scratch) {
  const int64_t count = in[0].shape.elements();
  std::vector<uint8_t> quantized(static_cast<size_t>(count));
  const Quantization q = quantize_dynamically(in[0].as<float>(), quantized.data(), count);
  products.run({{BP_DTYPE_UINT8, in[0].shape, quantized.data()}, q.scale, q.zero}, in[1], {in[2], at(in, 3), at(in, 4)},
               out[0], scratch);
}

void run_scaled(const IntegerProducts& products, Tensors in, Tensors out, void* scratch) {
  const ZeroPointVector zero(at(in, 4));
  products.run({in[0], static_cast<float>(scalar(in[2])), zero.values()[0]}, in[1], {in[3], at(in, 5), at(in, 6)},
               out[0], scratch);
}

// The inputs in `of_rows` must have one element, those in `of_columns` one element or one per column.
Plan plan_integers(const PlanContext& context, Tensors in, PackedWeights& packed, std::initializer_list<size_t> of_rows,
                   std::initializer_list<size_t> of_columns,
                   void (*run)(const IntegerProducts&, Tensors, Tensors, void*)) {
  std::string error;
  const std::optional<MatMulSize> size = matmul_size(in[0].shape, in[1].shape, &error);
  if (!size) return fail(error);
  const auto wrong = [&](size_t slot, int64_t columns) {
    const Tensor t = at(in, slot);
    return t.present() && t.shape.elements() != 1 && t.shape.elements() != columns;
  };
  for (size_t slot : of_rows)
    if (wrong(slot, 1))
      return fail("input " + std::to_string(slot) + " has shape " + to_string(in[slot].shape) +
                  "; it must have one element");
  for (size_t slot : of_columns)
    if (wrong(slot, size->n))
      return fail("input " + std::to_string(slot) + " has shape " + to_string(in[slot].shape) +
                  "; it must have one element, or one for each of " + std::to_string(size->n) + " columns");
  IntegerProducts products(context, *size, in[1], packed);
  const int64_t scratch = products.scratch_bytes();
  const bool is_packed = products.is_packed();
  Plan plan = make_plan({size->shape},
                        [products = std::move(products), run](Tensors inputs, Tensors outputs, void* memory) {
                          run(products, inputs, outputs, memory);
                        },
                        {.scratch_bytes = scratch});
  if (is_packed) plan.packed = 1;
  return plan;
}

constexpr bp_dtype_set_t kBytes = just(BP_DTYPE_INT8) | just(BP_DTYPE_UINT8);
constexpr bp_dtype_set_t kFloat = just(BP_DTYPE_FLOAT);

Verdict supports_dynamic(const Node& node) {
  return accepts(node, 3, {kFloat, kBytes, kFloat, kBytes, kFloat});
}
std::unique_ptr<Kernel> create_dynamic(const Node&) {
  return make_kernel([packed = std::make_shared<PackedWeights>()](const PlanContext& context, Tensors in) {
    return plan_integers(context, in, *packed, {}, {2, 3, 4}, run_dynamic);
  });
}

Verdict supports_scaled(const Node& node) {
  constexpr bp_dtype_set_t kReals = kFloat | just(BP_DTYPE_FLOAT16);
  return accepts(node, 4, {kBytes, kBytes, kReals, kReals, kBytes, kBytes, kReals});
}
std::unique_ptr<Kernel> create_scaled(const Node&) {
  return make_kernel([packed = std::make_shared<PackedWeights>()](const PlanContext& context, Tensors in) {
    return plan_integers(context, in, *packed, {2, 4}, {3, 5, 6}, run_scaled);
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> fused_matmul_rows() {
  static constexpr Row kRows[] = {
      Row{kMicrosoft, "FusedMatMul", 1, supports_fused, create_fused}.in_fp32(0b010),
      {kMicrosoft, "DynamicQuantizeMatMul", 1, supports_dynamic, create_dynamic},
      {kMicrosoft, "MatMulIntegerToFloat", 1, supports_scaled, create_scaled},
  };
  return kRows;
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// MatMul, which is numpy's matmul: batches are broadcast; a one-dimensional A is a row, a one-dimensional B a column.
#include "kernels/matmul/matmul.h"

#include "kernels/common/function_kernel.h"
#include "kernels/common/operations.h"
#include "kernels/common/support.h"
#include "kernels/matmul/bf16_product.h"
#include "kernels/matmul/gemv.h"
#include "kernels/matmul/onednn_matmul.h"
#include "kernels/matmul/tiled_product.h"
#include "kernels/matmul/wide_product.h"
#include "kernels/post_op/activation.h"
#include "runtime/implementations.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {

std::optional<MatMulSize> matmul_size(const Shape& a, const Shape& b, std::string* error) {
  MatMulSize size;
  auto fails = [&] {
    *error = "cannot multiply " + to_string(a) + " by " + to_string(b);
    return std::nullopt;
  };
  if (a.rank() == 0 || b.rank() == 0) return fails();
  size.m = a.rank() == 1 ? 1 : a[a.rank() - 2];
  size.k = a[a.rank() - 1];
  size.n = b.rank() == 1 ? 1 : b[b.rank() - 1];
  if (size.k != (b.rank() == 1 ? b[0] : b[b.rank() - 2])) return fails();

  int a_batch = std::max(0, a.rank() - 2);
  int b_batch = std::max(0, b.rank() - 2);
  Shape batch;
  int rank = std::max(a_batch, b_batch);
  for (int i = 0; i < rank; ++i) {
    int64_t ea = i < rank - a_batch ? 1 : a[i - (rank - a_batch)];
    int64_t eb = i < rank - b_batch ? 1 : b[i - (rank - b_batch)];
    if (ea != eb && ea != 1 && eb != 1) return fails();
    int64_t extent = ea == 1 ? eb : ea;
    batch.push_back(extent);
  }
  const bool empty = batch.elements() == 0 || size.m == 0 || size.n == 0;
  for (int i = 0; i < rank && !empty; ++i) {
    const int64_t ea = i < rank - a_batch ? 1 : a[i - (rank - a_batch)];
    const int64_t eb = i < rank - b_batch ? 1 : b[i - (rank - b_batch)];
    const int64_t extent = batch[i];
    size.a_offsets.add_axis(extent, ea);
    size.b_offsets.add_axis(extent, eb);
  }
  // If B has two dimensions, the matrices A of the batch are multiplied as one tall matrix.
  if (b_batch == 0 && b.rank() > 1 && a.rank() > 2) {
    size.m *= batch.elements();
    size.a_offsets = size.b_offsets = {};
  }
  size.shape = batch;
  if (a.rank() > 1) size.shape.push_back(a[a.rank() - 2]);
  if (b.rank() > 1) size.shape.push_back(size.n);
  return size;
}

namespace {

// Input to the implementations in kMatMuls: a MatMul for one set of extents.
struct MatMulProblem {
  MatMulSize size;
  Tensors inputs;
  std::span<const PostOp> post_ops;  // empty unless B is a known matrix
  PackedWeights& packed;
  std::unique_ptr<Step> onednn;

  KnownProduct known() const { return {size.m, size.n, size.k, false, post_ops, size.shape}; }
};

const char* refuse_known(const MatMulProblem& p) {
  if (p.inputs[0].dtype != BP_DTYPE_FLOAT) return "its inputs are not in fp32";
  if (p.inputs[1].data == nullptr) return "B is not known";
  return p.inputs[1].shape.rank() != 2 ? "B is not a matrix" : nullptr;
}

const char* refuse_packing(const MatMulProblem& p) {
  if (const char* why = refuse_known(p)) return why;
  return p.size.m <= kGemvRows ? "A has too few rows for packing B to pay off" : nullptr;
}

const char* refuse_bf16(const PlanContext& context, MatMulProblem& p) {
  const char* why = refuse_packing(p);
  return why != nullptr ? why : refuse_bf16_product(context, p.known());
}

const char* refuse_tiled(const PlanContext&, MatMulProblem& p) {
  const char* why = refuse_packing(p);
  return why != nullptr ? why : refuse_tiled_product(p.known());
}

const char* refuse_onednn(const PlanContext& context, MatMulProblem& p) {
  if (const char* why = refuse_packing(p)) return why;
  p.onednn = make_onednn_product(context, p.known(), p.inputs, p.packed);
  return p.onednn == nullptr ? "oneDNN has no fast implementation" : nullptr;
}

const char* refuse_gemv(const PlanContext&, MatMulProblem& p) {
  if (const char* why = refuse_known(p)) return why;
  return p.size.m > kGemvRows ? "A has more than 4 rows" : nullptr;
}

const char* refuse_sgemm(const PlanContext&, MatMulProblem& p) {
  return refuse_known(p);
}

const char* refuse_batch(const PlanContext&, MatMulProblem& p) {
  if (p.inputs[0].dtype != BP_DTYPE_FLOAT) return "its inputs are not in fp32";
  return p.post_ops.empty() ? nullptr : "other nodes were fused into it";
}

const char* refuse_wide(const PlanContext&, MatMulProblem& p) {
  if (!has_wide_product(p.inputs[0].dtype)) return "its type is neither DOUBLE nor a 32- or 64-bit integer";
  return p.size.n < 8 ? "it has fewer than 8 columns, so most of a vector would be padding" : nullptr;
}

Plan plan_bf16(const PlanContext& context, MatMulProblem& p) {
  return plan_bf16_product(context, p.known(), p.inputs, p.packed);
}

Plan plan_tiled(const PlanContext& context, MatMulProblem& p) {
  return plan_tiled_product(context, p.known(), p.inputs, p.packed);
}

Plan plan_onednn(const PlanContext&, MatMulProblem& p) {
  Plan plan;
  plan.step = std::move(p.onednn);
  plan.shapes = {p.size.shape};
  plan.packed = 1;
  return plan;
}

// Applies post-operations to a product of m rows and n columns.
void finish(const std::vector<PostOp>& ops, int64_t m, int64_t n, Tensors in, Tensors out) {
  if (ops.empty()) return;
  parallel(m, 1 + kCheapGrain / (1 + n), [&](int64_t begin, int64_t end) {
    finish_rows(ops, out[0].as<float>(), begin, end, n, in.back().as<float>());
  });
}

template <bool kFewRows>
Plan plan_matrix(const PlanContext&, MatMulProblem& p) {
  const MatMulSize& s = p.size;
  const std::vector<PostOp> all(p.post_ops.begin(), p.post_ops.end());
  return make_plan({s.shape}, [m = s.m, n = s.n, k = s.k, all](Tensors in, Tensors out) {
    const float *x = in[0].as<float>(), *w = in[1].as<float>();
    if constexpr (kFewRows)
      gemv(m, n, k, x, w, out[0].as<float>());
    else
      sgemm(m, n, k, 1, {x, k}, {w, n}, 0, out[0].as<float>(), n);
    finish(all, m, n, in, out);
  });
}

Plan plan_batch(const PlanContext&, MatMulProblem& p) {
  return make_plan({p.size.shape}, [s = p.size](Tensors in, Tensors out) {
    const int64_t batch = s.a_offsets.size();
    // Many small products run in parallel with each other; a large one is itself divided among threads.
    int64_t grain = std::max<int64_t>(1, processor().multiply_adds(2.048) / std::max<int64_t>(1, s.m * s.n * s.k));
    parallel(batch, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        sgemm(s.m, s.n, s.k, 1, {in[0].as<float>() + s.a_offsets[i] * s.m * s.k, s.k},
              {in[1].as<float>() + s.b_offsets[i] * s.k * s.n, s.n}, 0, out[0].as<float>() + i * s.m * s.n, s.n);
      }
    });
  });
}

Plan plan_wide(const PlanContext&, MatMulProblem& p) {
  return make_plan({p.size.shape}, [s = p.size](Tensors in, Tensors out) {
    const bp_dtype_t dtype = in[0].dtype;
    for (int64_t i = 0; i < s.a_offsets.size(); ++i)
      wide_product(dtype, s.m, s.n, s.k, in[0].as<std::byte>() + bytes_of(dtype, s.a_offsets[i] * s.m * s.k),
                   in[1].as<std::byte>() + bytes_of(dtype, s.b_offsets[i] * s.k * s.n),
                   out[0].as<std::byte>() + bytes_of(dtype, i * s.m * s.n));
  });
}

Plan plan_direct(const PlanContext&, MatMulProblem& p) {
  const std::vector<PostOp> all(p.post_ops.begin(), p.post_ops.end());
  return make_plan({p.size.shape}, [s = p.size, all](Tensors in, Tensors out) {
    dispatch<Numbers>(in[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Sum = std::conditional_t<kIsFloating<T>, compute_t<T>, uint64_t>;  // integers wrap around
      for (int64_t i = 0; i < s.a_offsets.size(); ++i) {
        multiply<Sum>(
            s.m, s.n, s.k,
            [a = in[0].as<T>() + s.a_offsets[i] * s.m * s.k](int64_t, int64_t at) { return static_cast<Sum>(a[at]); },
            [b = in[1].as<T>() + s.b_offsets[i] * s.k * s.n](int64_t, int64_t at) { return static_cast<Sum>(b[at]); },
            [c = out[0].as<T>() + i * s.m * s.n](int64_t, int64_t, int64_t at, Sum sum) {
              c[at] = static_cast<T>(sum);
            });
      }
    });
    finish(all, s.m, s.n, in, out);
  });
}

constexpr std::array kMatMuls = {
    Implementation<MatMulProblem>{"bf16", refuse_bf16, plan_bf16},
    Implementation<MatMulProblem>{"tiled", refuse_tiled, plan_tiled},
    Implementation<MatMulProblem>{"onednn", refuse_onednn, plan_onednn},
    Implementation<MatMulProblem>{"gemv", refuse_gemv, plan_matrix<true>},
    Implementation<MatMulProblem>{"sgemm", refuse_sgemm, plan_matrix<false>},
    Implementation<MatMulProblem>{"sgemm_batch", refuse_batch, plan_batch},
    Implementation<MatMulProblem>{"wide", refuse_wide, plan_wide},
    Implementation<MatMulProblem>{"direct", nullptr, plan_direct},
};
ImplementationNames implementations() {
  return names_of("matmul", kMatMuls);
}

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 2, {set_of(Numbers{}), set_of(Numbers{})}); !v) return v;
  return same_type(node, 0, 1);
}

// Post-operations are fused only if B is known (passes/fusion.cpp).
class MatMul final : public Kernel {
 public:
  Plan plan(const PlanContext& context, Tensors inputs) const override {
    const Tensor& b = inputs[1];
    std::string error;
    std::optional<MatMulSize> size = matmul_size(inputs[0].shape, b.shape, &error);
    if (!size) return fail(error);
    MatMulProblem problem{std::move(*size), inputs, post_ops_, packed_, nullptr};
    return plan_best(context, "matmul", kMatMuls, problem);
  }

  bool packs(size_t input) const override { return input == 1; }

  bool append(PostOp&& op) override {
    const bool fits = keeps_order(post_ops_, op);
    if (fits) post_ops_.push_back(std::move(op));
    return fits;
  }

 private:
  std::vector<PostOp> post_ops_;
  mutable PackedWeights packed_;
};

std::unique_ptr<Kernel> create(const Node&) {
  return std::make_unique<MatMul>();
}

}  // namespace

[[gnu::cold]] std::span<const Row> matmul_rows() {
  static constexpr Row kRows[] = {
      Row{"", "MatMul", 1, supports, create}
          .in_fp32(0b010)
          .with(kMultipliesInBf16)
          .costing(product_operations)
          .choosing(implementations),
  };
  return kRows;
}

}  // namespace backplane::cpu

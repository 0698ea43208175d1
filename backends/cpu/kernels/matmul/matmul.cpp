// SPDX-License-Identifier: Apache-2.0
// MatMul: numpy's matmul. Batches are broadcast; a one-dimensional operand is a row or a column.
#include "kernels/matmul/matmul.h"

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/matmul/gemv.h"
#include "kernels/matmul/onednn_matmul.h"
#include "kernels/matmul/tiled_product.h"
#include "kernels/matmul/wide_product.h"
#include "kernels/post_op/activation.h"
#include "runtime/threads.h"

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
  size.a_offsets = {0};
  size.b_offsets = {0};
  int rank = std::max(a_batch, b_batch);
  for (int i = 0; i < rank; ++i) {
    int64_t ea = i < rank - a_batch ? 1 : a[i - (rank - a_batch)];
    int64_t eb = i < rank - b_batch ? 1 : b[i - (rank - b_batch)];
    if (ea != eb && ea != 1 && eb != 1) return fails();
    int64_t extent = ea == 1 ? eb : ea;
    batch.push_back(extent);
    auto spread = [&](std::vector<int64_t>& offsets, int64_t own) {
      std::vector<int64_t> wider;
      wider.reserve(offsets.size() * static_cast<size_t>(extent));
      for (int64_t base : offsets) {
        for (int64_t j = 0; j < extent; ++j) wider.push_back(base * own + (own == 1 ? 0 : j));
      }
      offsets = std::move(wider);
    };
    spread(size.a_offsets, ea);
    spread(size.b_offsets, eb);
  }
  // A batch that shares B is one tall matrix.
  if (b_batch == 0 && b.rank() > 1 && a.rank() > 2) {
    size.m *= batch.elements();
    size.a_offsets = size.b_offsets = {0};
  }
  size.shape = batch;
  if (a.rank() > 1) size.shape.push_back(a[a.rank() - 2]);
  if (b.rank() > 1) size.shape.push_back(size.n);
  return size;
}

namespace {

Plan plan_product(Tensors inputs) {
  std::string error;
  std::optional<MatMulSize> size = matmul_size(inputs[0].shape, inputs[1].shape, &error);
  if (!size) return fail(error);
  Shape shape = size->shape;
  if (inputs[0].dtype == BP_DTYPE_FLOAT && !reference_only()) {
    return make_plan({shape}, [s = *size](Tensors in, Tensors out) {
      const auto batch = static_cast<int64_t>(s.a_offsets.size());
      // Many small products run side by side, large ones are spread themselves.
      int64_t grain = std::max<int64_t>(1, (int64_t{1} << 18) / std::max<int64_t>(1, s.m * s.n * s.k));
      parallel(batch, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto at = static_cast<size_t>(i);
          sgemm(s.m, s.n, s.k, 1, {in[0].as<float>() + s.a_offsets[at] * s.m * s.k, s.k},
                {in[1].as<float>() + s.b_offsets[at] * s.k * s.n, s.n}, 0, out[0].as<float>() + i * s.m * s.n, s.n);
        }
      });
    });
  }
  if (has_wide_product(inputs[0].dtype) && size->n >= 8 && !reference_only()) {  // else mostly padding
    return make_plan({shape}, [s = *size](Tensors in, Tensors out) {
      const bp_dtype_t dtype = in[0].dtype;
      for (size_t i = 0; i < s.a_offsets.size(); ++i)
        wide_product(dtype, s.m, s.n, s.k, in[0].as<std::byte>() + bytes_of(dtype, s.a_offsets[i] * s.m * s.k),
                     in[1].as<std::byte>() + bytes_of(dtype, s.b_offsets[i] * s.k * s.n),
                     out[0].as<std::byte>() + bytes_of(dtype, static_cast<int64_t>(i) * s.m * s.n));
    });
  }
  return make_plan({shape}, [s = *size](Tensors in, Tensors out) {
    dispatch<Numbers>(in[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Sum = std::conditional_t<kIsFloating<T>, compute_t<T>, uint64_t>;  // integers wrap around
      for (size_t i = 0; i < s.a_offsets.size(); ++i) {
        multiply<Sum>(
            s.m, s.n, s.k,
            [a = in[0].as<T>() + s.a_offsets[i] * s.m * s.k](int64_t, int64_t at) { return static_cast<Sum>(a[at]); },
            [b = in[1].as<T>() + s.b_offsets[i] * s.k * s.n](int64_t, int64_t at) { return static_cast<Sum>(b[at]); },
            [c = out[0].as<T>() + static_cast<int64_t>(i) * s.m * s.n](int64_t, int64_t, int64_t at, Sum sum) {
              c[at] = static_cast<T>(sum);
            });
      }
    });
  });
}

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 2, {set_of(Numbers{}), set_of(Numbers{})}); !v) return v;
  return same_type(node, 0, 1);
}

// What is appended to it (passes/fusion.cpp) has a known matrix to follow.
class MatMul final : public Kernel {
 public:
  Plan plan(Tensors inputs) const override {
    const Tensor& b = inputs[1];
    std::string error;
    std::optional<MatMulSize> size = matmul_size(inputs[0].shape, b.shape, &error);
    if (!size) return fail(error);
    const bool fast =
        inputs[0].dtype == BP_DTYPE_FLOAT && b.data != nullptr && b.shape.rank() == 2 && !reference_only();
    if (fast && size->m > kGemvRows) {
      const KnownProduct product{size->m, size->n, size->k, false, post_ops_, size->shape};
      if (Plan plan = plan_tiled_product(product, inputs, packed_); plan.step) return plan;
      if (Plan plan = plan_known_product(product, inputs, packed_); plan.step) return plan;
    }
    if (!fast && post_ops_.empty()) return plan_product(inputs);
    const MatMulSize& s = *size;
    return make_plan({s.shape}, [m = s.m, n = s.n, k = s.k, ops = post_ops_](Tensors in, Tensors out) {
      const float *x = in[0].as<float>(), *w = in[1].as<float>();
      float* y = out[0].as<float>();
      if (m <= kGemvRows)
        gemv(m, n, k, x, w, y);
      else
        sgemm(m, n, k, 1, {x, k}, {w, n}, 0, y, n);
      if (ops.empty()) return;
      parallel(m, 1 + kCheapGrain / (1 + n),
               [&](int64_t begin, int64_t end) { finish_rows(ops, y, begin, end, n, in.back().as<float>()); });
    });
  }

  bool packs(size_t input) const override { return input == 1; }

  bool append(PostOp op) override {
    const bool fits = keeps_order(post_ops_, op);
    if (fits) post_ops_.push_back(std::move(op));
    return fits;
  }

 private:
  std::vector<PostOp> post_ops_;
  mutable PackedWeights packed_;
};

constexpr Row kRows[] = {
    {"", "MatMul", 1, supports, [](const Node&) -> std::unique_ptr<Kernel> { return std::make_unique<MatMul>(); }},
};

}  // namespace

[[gnu::cold]] std::span<const Row> matmul_rows() {
  return kRows;
}

}  // namespace backplane::cpu

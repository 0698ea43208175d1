// SPDX-License-Identifier: Apache-2.0
#include "kernels/integer/matmul_integer.h"

#include "kernels/common/function_kernel.h"
#include "kernels/common/quantization.h"
#include "kernels/common/support.h"
#include "kernels/integer/integer_gemm.h"
#include "kernels/post_op/activation.h"
#include "kernels/simd/clones.h"

namespace backplane::cpu {

namespace {

constexpr size_t kA = 0, kB = 1, kAZero = 2, kBZero = 3, kScale = 4;

// `y` and `sums` are the same memory: sums are scaled in place.
CLONED void scale_by_one(const int32_t* sums, float* y, int64_t count, float scale) {
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(sums[i]) * scale;
}
CLONED void scale_each(const int32_t* sums, float* y, int64_t count, const float* scales) {
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(sums[i]) * scales[i];
}

class MatMulInteger final : public Kernel {
 public:
  // `definition` is the kernel for reference mode. It is null if a pass creates this kernel, because passes do not run
  // in reference mode.
  MatMulInteger(bool scaled, std::unique_ptr<Kernel> definition)
      : scaled_(scaled), definition_(std::move(definition)) {}

  Plan plan(const PlanContext& context, Tensors in) const override {
    if (definition_ != nullptr && context.reference) return definition_->plan(context, in);
    const Shape &a = in[kA].shape, &b = in[kB].shape;
    std::string error;
    std::optional<MatMulSize> size = matmul_size(a, b, &error);
    if (!size) return fail(error);
    const auto batches = [](const Shape& shape) { return shape.elements(0, std::max(0, shape.rank() - 2)); };
    const int64_t rows = a.rank() > 1 ? a[a.rank() - 2] : 1, n = size->n;
    if (auto why = check_zero_point(at(in, kAZero), "a_zero_point", rows, batches(a))) return fail(*why);
    if (auto why = check_zero_point(at(in, kBZero), "b_zero_point", n, batches(b))) return fail(*why);
    if (scaled_ && in[kScale].shape.elements() != 1 && in[kScale].shape.elements() != n)
      return fail("the scale has extents " + to_string(in[kScale].shape) + ", but must have 1 or " + std::to_string(n) +
                  " elements");
    IntegerGemm products(context.threads, *size);
    products.pack(packed_, in[kB]);
    const bool is_packed = products.is_packed();
    const int64_t scratch = products.scratch_bytes();
    Plan plan = make_plan(
        {size->shape},
        [scaled = scaled_, ops = post_ops_, products = std::move(products)](Tensors ins, Tensors outs, void* memory) {
          const ZeroPointVector a_zeros(at(ins, kAZero)), b_zeros(at(ins, kBZero));
          const Tensor scale = scaled ? ins[kScale] : Tensor{};
          const bool one = scale.shape.elements() == 1;
          const int64_t m = products.size().m, width = products.size().n;
          auto* sums = outs[0].as<int32_t>();
          products.run(ins[kA], ins[kB], {a_zeros.values(), b_zeros.values()}, sums, memory, [&](const SumsPart& part) {
            if (!scaled) return;
            const int64_t first = part.batch * m, columns = part.last_column - part.first_column;
            for (int64_t row = first + part.first_row; row < first + part.last_row; ++row)
              scale_sums(sums + row * width + part.first_column, columns,
                         scale.as<float>() + (one ? 0 : part.first_column), one);
            finish_part(ops, outs[0].as<float>(), {first + part.first_row, first + part.last_row},
                        {part.first_column, part.last_column}, width, ins.back().as<float>());
          });
        },
        {.scratch_bytes = scratch});
    if (is_packed) plan.packed = kB;
    return plan;
  }

  bool append(PostOp&& op) override {
    const bool fits = scaled_ && (op.kind != PostOp::kAdd || !adds());
    if (fits) post_ops_.push_back(std::move(op));
    return fits;
  }

 private:
  bool adds() const {
    return std::ranges::any_of(post_ops_, [](const PostOp& op) { return op.kind == PostOp::kAdd; });
  }

  bool scaled_;
  std::unique_ptr<Kernel> definition_;
  std::vector<PostOp> post_ops_;
  mutable PackedWeights packed_;
};

}  // namespace

std::unique_ptr<Kernel> make_matmul_integer(std::unique_ptr<Kernel> definition) {
  return std::make_unique<MatMulInteger>(false, std::move(definition));
}

std::unique_ptr<Kernel> make_scaled_matmul() {
  return std::make_unique<MatMulInteger>(true, nullptr);
}

void scale_sums(int32_t* sums, int64_t count, const float* scales, bool one) {
  auto* y = reinterpret_cast<float*>(sums);
  if (one)
    clone_of<scale_by_one>(sums, y, count, *scales);
  else
    clone_of<scale_each>(sums, y, count, scales);
}

}  // namespace backplane::cpu

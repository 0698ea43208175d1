// SPDX-License-Identifier: Apache-2.0
// com.microsoft's products with something around them: FusedMatMul (transposed and scaled), DynamicQuantizeMatMul and
// MatMulIntegerToFloat (integers inside, floats outside).
#include <cmath>

#include "ops/attention.h"
#include "ops/function_kernel.h"
#include "ops/matmul.h"
#include "ops/onednn.h"
#include "ops/quantize.h"
#include "ops/rows.h"

namespace backplane::cpu {

namespace {

constexpr const char* kMicrosoft = "com.microsoft";

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
  parallel(static_cast<int64_t>(s.a_offsets.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const C* left = a + s.a_offsets[static_cast<size_t>(i)] * s.m * s.k;
      const C* right = b + s.b_offsets[static_cast<size_t>(i)] * s.k * s.n;
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
    if (node.attr(name, int64_t{0}) != 0) return no(BP_REASON_ATTRIBUTE, std::string(name) + " is set");
  return same_type(node, 0, 1);
}

std::unique_ptr<Kernel> create_fused(const Node& node) {
  const Fused f{node.attr("alpha", 1.0f), node.attr("transA", int64_t{0}) != 0, node.attr("transB", int64_t{0}) != 0};
  return make_kernel([f](Tensors in) -> Plan {
    // The extents as they are after transposition; a row or column alone stays as it is.
    Fused own = f;
    const auto turned = [](Shape shape, bool& transposed) {
      transposed = transposed && shape.rank() > 1;
      if (transposed) std::swap(shape[shape.rank() - 1], shape[shape.rank() - 2]);
      return shape;
    };
    const Shape a = turned(in[0].shape, own.a_transposed), b = turned(in[1].shape, own.b_transposed);
    std::string error;
    std::optional<MatMulSize> size = matmul_size(a, b, &error);
    if (!size) return fail(error);
    // matmul_size joins the rows of a batch that shares B, which transposed rows cannot be.
    if (own.a_transposed && size->a_offsets.size() == 1 && a.rank() > 2) {
      const int64_t batch = a.elements(0, a.rank() - 2);
      size->m = a[a.rank() - 2];
      size->a_offsets.resize(static_cast<size_t>(batch));
      for (int64_t i = 0; i < batch; ++i) size->a_offsets[static_cast<size_t>(i)] = i;
      size->b_offsets.assign(static_cast<size_t>(batch), 0);
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

// One value, or one for each column.
class PerColumn {
 public:
  explicit PerColumn(const Tensor& tensor) : values_(1, 0.0f) {
    if (!tensor.present()) return;
    values_.resize(static_cast<size_t>(tensor.shape.elements()));
    dispatch<TypeList<float, Half, int8_t, uint8_t>>(tensor.dtype, [&](auto tag) {
      const auto* data = tensor.as<typename decltype(tag)::type>();
      for (size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(data[i]);
    });
  }
  float operator[](int64_t column) const { return values_[values_.size() == 1 ? 0 : static_cast<size_t>(column)]; }

 private:
  std::vector<float> values_;
};

// A as codes with their scale and zero point.
struct Codes {
  const Tensor& tensor;
  float scale;
  int32_t zero;
};

void run_integers(const MatMulSize& s, const Codes& a, const Tensor& b, const Tensor& b_scale, const Tensor& b_zero,
                  const Tensor& bias, const Tensor& y) {
  const PerColumn scales(b_scale), zeros(b_zero), shifts(bias);
  using Bytes = TypeList<int8_t, uint8_t>;
  dispatch<Bytes>(a.tensor.dtype, [&](auto a_tag) {
    dispatch<Bytes>(b.dtype, [&](auto b_tag) {
      const auto* a_data = a.tensor.as<typename decltype(a_tag)::type>();
      const auto* b_data = b.as<typename decltype(b_tag)::type>();
      std::vector<int32_t> column_zeros(static_cast<size_t>(s.n));
      for (int64_t j = 0; j < s.n; ++j) column_zeros[static_cast<size_t>(j)] = static_cast<int32_t>(zeros[j]);
      for (size_t i = 0; i < s.a_offsets.size(); ++i) {
        multiply<int32_t>(
            s.m, s.n, s.k, [&, p = a_data + s.a_offsets[i] * s.m * s.k](int64_t, int64_t at) { return p[at] - a.zero; },
            [&, p = b_data + s.b_offsets[i] * s.k * s.n](int64_t column, int64_t at) {
              return p[at] - column_zeros[static_cast<size_t>(column)];
            },
            [&, base = static_cast<int64_t>(i) * s.m * s.n](int64_t, int64_t column, int64_t at, int32_t sum) {
              const float value = static_cast<float>(sum) * (a.scale * scales[column]) + shifts[column];
              if (y.dtype == BP_DTYPE_FLOAT)
                y.as<float>()[base + at] = value;
              else
                y.as<Half>()[base + at] = Half(value);
            });
      }
    });
  });
}

// As DynamicQuantizeLinear has it: the range includes 0.
void run_dynamic(const MatMulSize& s, Tensors in, Tensors out) {
  const int64_t count = in[0].shape.elements();
  const float* x = in[0].as<float>();
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  const float scale = high == low ? 1.0f : (high - low) / 255;
  const float zero = std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f));
  std::vector<uint8_t> codes(static_cast<size_t>(count));
  parallel(count, kMathGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      codes[static_cast<size_t>(i)] = saturate<uint8_t>(std::nearbyint(x[i] / scale) + zero);
  });
  const Tensor a{BP_DTYPE_UINT8, in[0].shape, codes.data()};
  run_integers(s, {a, scale, static_cast<int32_t>(zero)}, in[1], in[2], at(in, 3), at(in, 4), out[0]);
}

void run_scaled(const MatMulSize& s, Tensors in, Tensors out) {
  const PerColumn scale(in[2]), zero(at(in, 4));
  run_integers(s, {in[0], scale[0], static_cast<int32_t>(zero[0])}, in[1], in[3], at(in, 5), at(in, 6), out[0]);
}

// `of_rows` are slots that hold one number, `of_columns` one or one for each column.
Plan plan_integers(Tensors in, std::initializer_list<size_t> of_rows, std::initializer_list<size_t> of_columns,
                   void (*run)(const MatMulSize&, Tensors, Tensors)) {
  std::string error;
  const std::optional<MatMulSize> size = matmul_size(in[0].shape, in[1].shape, &error);
  if (!size) return fail(error);
  const auto wrong = [&](size_t slot, int64_t columns) {
    const Tensor t = at(in, slot);
    return t.present() && t.shape.elements() != 1 && t.shape.elements() != columns;
  };
  for (size_t slot : of_rows)
    if (wrong(slot, 1)) return fail("input " + std::to_string(slot) + " is not one number");
  for (size_t slot : of_columns)
    if (wrong(slot, size->n))
      return fail("input " + std::to_string(slot) + " " + to_string(in[slot].shape) + " is neither one number nor " +
                  std::to_string(size->n));
  Shape shape = size->shape;
  return make_plan({shape}, [s = *size, run](Tensors inputs, Tensors outputs) { run(s, inputs, outputs); });
}

constexpr bp_dtype_set_t kBytes = just(BP_DTYPE_INT8) | just(BP_DTYPE_UINT8);
constexpr bp_dtype_set_t kFloat = just(BP_DTYPE_FLOAT);

Verdict supports_dynamic(const Node& node) {
  return accepts(node, 3, {kFloat, kBytes, kFloat, kBytes, kFloat});
}
std::unique_ptr<Kernel> create_dynamic(const Node&) {
  return make_kernel([](Tensors in) { return plan_integers(in, {}, {2, 3, 4}, run_dynamic); });
}

Verdict supports_scaled(const Node& node) {
  constexpr bp_dtype_set_t reals = kFloat | just(BP_DTYPE_FLOAT16);
  return accepts(node, 4, {kBytes, kBytes, reals, reals, kBytes, kBytes, reals});
}
std::unique_ptr<Kernel> create_scaled(const Node&) {
  return make_kernel([](Tensors in) { return plan_integers(in, {2, 4}, {3, 5, 6}, run_scaled); });
}

constexpr Row kRows[] = {
    {kMicrosoft, "FusedMatMul", 1, supports_fused, create_fused},
    {kMicrosoft, "DynamicQuantizeMatMul", 1, supports_dynamic, create_dynamic},
    {kMicrosoft, "MatMulIntegerToFloat", 1, supports_scaled, create_scaled},
};

}  // namespace

std::span<const Row> fused_matmul_rows() {
  return kRows;
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantized/integer_products.h"

#include "kernels/common/dtype_dispatch.h"
#include "kernels/common/float16_array.h"
#include "kernels/common/quantization.h"
#include "kernels/simd/clones.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kChunk = 256;  // results that are computed in fp32 at a time, before they are rounded to fp16

CLONED void scale_sums(const int32_t* sums, const float* scales, const float* shifts, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(sums[i]) * scales[i] + shifts[i];
}

// Returns the tensor's numbers times `factor`, one for each of `columns` columns; zeros if the tensor is absent.
std::vector<float> per_column(const Tensor& tensor, float factor, int64_t columns) {
  std::vector<float> values(static_cast<size_t>(columns));
  if (!tensor.present()) return values;
  const bool one = tensor.shape.elements() == 1;
  dispatch<TypeList<float, Half>>(tensor.dtype, [&](auto tag) {
    const auto* data = tensor.as<typename decltype(tag)::type>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = factor * static_cast<float>(data[one ? 0 : i]);
  });
  return values;
}

}  // namespace

IntegerProducts::IntegerProducts(const PlanContext& context, const MatMulSize& size, const Tensor& b,
                                 PackedWeights& packed)
    : size_(size) {
  if (context.reference) return;
  tiles_.emplace(context.threads, size);
  tiles_->pack(packed, b);
}

void IntegerProducts::run(const QuantizedFactor& a, const Tensor& b, const ColumnParameters& columns, const Tensor& y,
                          void* scratch) const {
  const int64_t n = size_.n;
  const std::vector<float> scales = per_column(columns.scale, a.scale, n), shifts = per_column(columns.bias, 1, n);
  const ZeroPointVector zeros(columns.zero);
  auto* sums = static_cast<int32_t*>(scratch);
  const auto finish = [&](int64_t row, int64_t first, int64_t last) {
    const int64_t at = row * n;
    if (y.dtype == BP_DTYPE_FLOAT) {
      float* to = y.as<float>() + at + first;
      return clone_of<scale_sums>(sums + at + first, scales.data() + first, shifts.data() + first, to, last - first);
    }
    float chunk[kChunk];
    for (int64_t i = first; i < last; i += kChunk) {
      const int64_t count = std::min(kChunk, last - i);
      clone_of<scale_sums>(sums + at + i, scales.data() + i, shifts.data() + i, chunk, count);
      narrow(y.dtype, chunk, y.as<Half>() + at + i, count);
    }
  };
  if (tiles_) {
    tiles_->run(a.quantized, b, {{&a.zero, 1}, zeros.values()}, sums, static_cast<std::byte*>(scratch) + sums_bytes(),
                [&](const SumsPart& part) {
                  for (int64_t row = part.first_row; row < part.last_row; ++row)
                    finish(part.batch * size_.m + row, part.first_column, part.last_column);
                });
    return;
  }
  add_up(a, b, zeros.values(), sums);
  for (int64_t row = 0; n != 0 && row < size_.shape.elements() / n; ++row) finish(row, 0, n);
}

// Computes the sums by plain loops, for reference mode.
void IntegerProducts::add_up(const QuantizedFactor& a, const Tensor& b, std::span<const int32_t> zeros,
                             int32_t* sums) const {
  const MatMulSize& s = size_;
  const bool a_signed = a.quantized.dtype == BP_DTYPE_INT8, b_signed = b.dtype == BP_DTYPE_INT8;
  for (int64_t i = 0; i < s.a_offsets.size(); ++i) {
    const int64_t a_first = s.a_offsets[i] * s.m * s.k, b_first = s.b_offsets[i] * s.k * s.n;
    multiply<int32_t>(
        s.m, s.n, s.k, [&](int64_t, int64_t at) { return q8_at(a.quantized.data, a_signed, a_first + at) - a.zero; },
        [&](int64_t column, int64_t at) {
          return q8_at(b.data, b_signed, b_first + at) - zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(column)];
        },
        [&, base = i * s.m * s.n](int64_t, int64_t, int64_t at, int32_t sum) { sums[base + at] = sum; });
  }
}

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// Matrix products of 8-bit quantized values with float results.
#pragma once

#include <optional>

#include "kernels/integer/integer_gemm.h"
#include "runtime/memory.h"

namespace backplane::cpu {

// The left operand: quantized values with their scale and zero point.
struct QuantizedFactor {
  Tensor quantized;
  float scale;
  int32_t zero;
};

// The scale, zero point and bias of the right operand's columns. Each tensor has one element, for all columns, or one
// per column. The bias may be absent, and so may the zero point, which is then 0.
struct ColumnParameters {
  Tensor scale, zero, bias;
};

// Multiplies matrices of quantized values and scales the sums. The products are computed in tiles, or by plain loops in
// reference mode.
class IntegerProducts {
 public:
  IntegerProducts(const PlanContext& context, const MatMulSize& size, const Tensor& b, PackedWeights& packed);

  bool is_packed() const { return tiles_ && tiles_->is_packed(); }
  const MatMulSize& size() const { return size_; }
  // Scratch memory holds the sums, followed by the scratch memory of the tiles.
  int64_t scratch_bytes() const { return sums_bytes() + (tiles_ ? tiles_->scratch_bytes() : 0); }

  // Computes y, of FLOAT or FLOAT16, from a and b. `b` has no data if it is packed.
  void run(const QuantizedFactor& a, const Tensor& b, const ColumnParameters& columns, const Tensor& y,
           void* scratch) const;

 private:
  int64_t sums_bytes() const { return align_up(4 * size_.shape.elements()); }
  void add_up(const QuantizedFactor& a, const Tensor& b, std::span<const int32_t> zeros, int32_t* sums) const;

  MatMulSize size_;
  std::optional<IntegerGemm> tiles_;
};

}  // namespace backplane::cpu

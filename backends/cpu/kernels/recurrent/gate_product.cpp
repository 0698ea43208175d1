// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/gate_product.h"

#include "kernels/common/quantization.h"
#include "kernels/recurrent/rnn_gemm.h"
#include "runtime/memory.h"

namespace backplane::cpu {

GateProduct::GateProduct(const PlanContext& context, int64_t rows, const Tensor& weights, PackedWeights& packed)
    : weights_(weights),
      inputs_(weights.shape[1]),
      units_(weights.shape[2] / kLstmGates),
      padded_(unit_blocks(units_) * kUnitBlock) {
  if (context.reference) return;
  MatMulSize size;
  size.m = rows;
  size.n = kLstmGates * padded_;
  size.k = inputs_;
  size.shape = Shape{rows, size.n};
  gemm_.emplace(context.threads, std::move(size));
  const int64_t columns = kLstmGates * padded_;
  const Block matrix = allocate_pages(product({inputs_, columns}));
  gemm_->pack(packed, weights, weights.shape[0], [&](int64_t direction) {
    const auto* from = weights.as<std::byte>() + direction * inputs_ * kLstmGates * units_;
    std::fill_n(matrix.get(), inputs_ * columns, std::byte{0});
    for (int64_t i = 0; i < inputs_ * kLstmGates; ++i, from += units_)
      std::copy_n(from, units_, matrix.get() + i * padded_);
    return matrix.get();
  });
}

void GateProduct::prepare(const GateRows& rows, void* scratch) const {
  if (!gemm_) return;
  Tensor weights = weights_;
  weights.data = nullptr;
  const auto last = static_cast<int64_t>(rows.rows.size()) - 1;
  gemm_->prepare(
      {false, weights, {{&rows.zero, 1}, rows.weight_zeros}, nullptr, 0}, 0,
      [&](int64_t, int64_t row, uint8_t*) { return rows.rows[static_cast<size_t>(std::min(row, last))]; }, scratch);
}

void GateProduct::multiply(const GateRows& rows, int32_t* sums, void* scratch, int64_t first, int64_t last) const {
  if (!gemm_) return add_up(rows, sums, first, last);
  const int64_t each = kUnitBlock / gemm_->lanes(), gate = padded_ / gemm_->lanes();
  for (int64_t g = 0; g < kLstmGates; ++g)
    gemm_->multiply(rows.direction, sums, scratch, g * gate + first * each, g * gate + last * each);
}

// Computes the sums by plain loops.
void GateProduct::add_up(const GateRows& rows, int32_t* sums, int64_t first, int64_t last) const {
  const bool is_signed = weights_.dtype == BP_DTYPE_INT8;
  const int64_t end = std::min(last * kUnitBlock, units_);
  for (const uint8_t* row : rows.rows) {
    for (int64_t g = 0; g < kLstmGates; ++g, sums += padded_) {
      for (int64_t u = first * kUnitBlock; u < end; ++u) {
        const size_t column = rows.weight_zeros.size() == 1 ? 0 : static_cast<size_t>(g * padded_ + u);
        uint32_t sum = 0;
        for (int64_t i = 0; i < inputs_; ++i) {
          const int64_t at = ((rows.direction * inputs_ + i) * kLstmGates + g) * units_ + u;
          const int32_t weight = q8_at(weights_.data, is_signed, at) - rows.weight_zeros[column];
          sum += static_cast<uint32_t>((int32_t{row[i]} - rows.zero) * weight);
        }
        sums[u] = static_cast<int32_t>(sum);
      }
      std::fill(sums + end, sums + last * kUnitBlock, 0);  // the padding units, if they are in these blocks
    }
  }
}

}  // namespace backplane::cpu

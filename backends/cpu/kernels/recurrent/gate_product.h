// SPDX-License-Identifier: Apache-2.0
// Products of rows of 8-bit quantized values with the weights of an LSTM's gates. A unit is one element of the hidden
// state. Arrays with an element per unit are padded to whole blocks of kUnitBlock units (kernels/recurrent/rnn_gemm.h).
#pragma once

#include <optional>

#include "kernels/integer/integer_gemm.h"

namespace backplane::cpu {

inline constexpr int64_t kLstmGates = 4;

// The rows of one product, and the direction of the LSTM by whose weights they are multiplied.
struct GateRows {
  std::span<const uint8_t* const> rows;  // not empty
  int32_t zero;                          // zero point of the rows
  int64_t direction;
  std::span<const int32_t> weight_zeros;  // one, or one for each gate and padded unit
};

class GateProduct {
 public:
  // The weights are [directions, inputs, 4 · units] and must be known. Each product has at most `rows` rows.
  GateProduct(const PlanContext& context, int64_t rows, const Tensor& weights, PackedWeights& packed);

  int64_t scratch_bytes() const { return gemm_ ? gemm_->scratch_bytes() : 0; }
  // Computes the sums [row][gate][padded unit] of blocks of units [first, last) on the calling thread. Call `prepare`
  // first, with the same rows and scratch memory. `sums` must have room for the constructor's number of rows: outside
  // reference mode, sums of that many rows are written.
  void prepare(const GateRows& rows, void* scratch) const;
  void multiply(const GateRows& rows, int32_t* sums, void* scratch, int64_t first, int64_t last) const;

 private:
  void add_up(const GateRows& rows, int32_t* sums, int64_t first, int64_t last) const;

  Tensor weights_;
  int64_t inputs_, units_, padded_;
  std::optional<IntegerGemm> gemm_;  // none in reference mode
};

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// Products with weights of 2, 4 or 8 bits, which have one scale per block. Weights are unpacked just before they are
// multiplied, in registers or (for many rows) in the cache, so that only packed weights are read from memory.
#pragma once

#include <cstdint>
#include <vector>

namespace backplane::cpu {

// Consecutive columns of weights. Each has `blocks` blocks of `block` values, packed from the lowest bit up.
struct NbitsColumns {
  int64_t bits, block, blocks;
  const uint8_t* packed;
  const float* scales;  // [column][block]
  const float* zeros;   // zero points [column][block]; null if all are 2^(bits - 1)

  int64_t length() const { return block * blocks; }
  int64_t column_bytes() const { return length() * bits / 8; }
};

// Whether multiply_nbits supports blocks of `block` values: packed, they consist of whole groups of 16 bytes, and a few
// unpacked ones fit in the first-level cache.
constexpr bool is_whole_nbits_block(int64_t bits, int64_t block) {
  return block * bits % 128 == 0 && block <= 4096;
}

// Writes the k ≤ length numbers of a row in the order in which multiply_nbits reads them, padded with zeros to
// `length`.
void arrange_nbits_row(int64_t bits, const float* x, int64_t k, int64_t length, float* arranged);

// y[r * n + c] = Σ x[r, :] · column c, for `rows` arranged rows and the first `columns` columns. Runs on the calling
// thread. `scratch` grows as needed; reusing it saves allocations.
void multiply_nbits(const NbitsColumns& b, const float* x, int64_t rows, int64_t columns, float* y, int64_t n,
                    std::vector<float>& scratch);

}  // namespace backplane::cpu

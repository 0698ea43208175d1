// SPDX-License-Identifier: Apache-2.0
// Products with weights of 2, 4 or 8 bits that share a scale in blocks: the values become numbers in registers, just
// before they are multiplied, so that one row reads nothing but the values.
#pragma once

#include <cstdint>
#include <vector>

namespace backplane::cpu {

// Columns of `blocks` blocks each, one after another, every block of `block` values. Values are packed from the lowest
// bit on.
struct NbitsColumns {
  int64_t bits, block, blocks;
  const uint8_t* packed;
  const float* scales;  // of each block
  const float* zeros;   // likewise, or null: the middle value

  int64_t length() const { return block * blocks; }
  int64_t column_bytes() const { return length() * bits / 8; }
};

// Whether blocks have whole vectors of values, and are not so long that a few of them do not stay in a cache.
constexpr bool is_whole_nbits_block(int64_t bits, int64_t block) {
  return block * bits % 128 == 0 && block <= 4096;
}

// The k numbers of a row, k ≤ length(), in the order in which the product reads them; zeros up to length().
void arrange_nbits_row(int64_t bits, const float* x, int64_t k, int64_t length, float* arranged);

// y[r * n + c] = Σ x[r, :] · column c, for `rows` arranged rows and the first `columns` columns on the calling thread.
void multiply_nbits(const NbitsColumns& b, const float* x, int64_t rows, int64_t columns, float* y, int64_t n,
                    std::vector<float>& scratch);

}  // namespace backplane::cpu

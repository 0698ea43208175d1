// SPDX-License-Identifier: Apache-2.0
#include "kernels/integer/integer_amx_tile.h"

#include "kernels/simd/amx.h"
#include "kernels/simd/lanes.h"
#include "runtime/processor.h"

namespace backplane::cpu {

#ifdef AMX_TILES

namespace {

constexpr int64_t kWord = sizeof(uint32_t), kBlock = 16;
typedef uint32_t Lanes __attribute__((vector_size(64), aligned(4), may_alias));

// Stores the initial values of the sums.
template <int kBlocks>
[[gnu::always_inline]] inline void set_sums(const IntegerTile& t, int64_t rows) {
  for (int b = 0; b < kBlocks; ++b) {
    const Lanes zero = *reinterpret_cast<const Lanes*>(t.column_zero + b * kBlock);
    const Lanes sum = *reinterpret_cast<const Lanes*>(t.column_sum + b * kBlock);
    uint32_t* y = t.y + b * kBlock;
    for (int64_t r = 0; r < rows; ++r, y += t.y_row)
      *reinterpret_cast<Lanes*>(y) = zero * t.row_rest[r] - sum * t.row_zero[r];
  }
}

// Registers 0 to 3 have sums, 4 and 5 rows of A, 6 and 7 columns of B. Rows that are in both tiles of sums have the
// same values in both.
template <int kTiles, int kBlocks>
[[gnu::always_inline]] inline void multiply(const IntegerTile& t, int64_t second) {
  const uint32_t *a0 = t.a, *a1 = t.a + second * t.groups, *b0 = t.b, *b1 = t.b + t.b_block;
  const int64_t a_row = t.groups * kWord, y_row = t.y_row * kWord;
  uint32_t *y0 = t.y, *y1 = t.y + second * t.y_row;
  amx::load<0>(y0, y_row);
  if constexpr (kBlocks == 2) amx::load<1>(y0 + kBlock, y_row);
  if constexpr (kTiles == 2) amx::load<2>(y1, y_row);
  if constexpr (kTiles == 2 && kBlocks == 2) amx::load<3>(y1 + kBlock, y_row);
  for (int64_t g = 0; g < t.groups; g += kAmxGroups) {
    amx::load<6>(b0 + g * kBlock, kBlock * kWord);
    amx::load<4>(a0 + g, a_row);
    amx::dpbsud<0, 4, 6>();
    if constexpr (kBlocks == 2) {
      amx::load<7>(b1 + g * kBlock, kBlock * kWord);
      amx::dpbsud<1, 4, 7>();
    }
    if constexpr (kTiles == 2) {
      amx::load<5>(a1 + g, a_row);
      amx::dpbsud<2, 5, 6>();
      if constexpr (kBlocks == 2) amx::dpbsud<3, 5, 7>();
    }
  }
  amx::store<0>(y0, y_row);
  if constexpr (kBlocks == 2) amx::store<1>(y0 + kBlock, y_row);
  if constexpr (kTiles == 2) amx::store<2>(y1, y_row);
  if constexpr (kTiles == 2 && kBlocks == 2) amx::store<3>(y1 + kBlock, y_row);
}

template <int kBlocks>
FOR_AVX512 void compute(const IntegerTile& t, int64_t rows, int64_t register_rows) {
  set_sums<kBlocks>(t, rows);
  if (rows > register_rows)
    multiply<2, kBlocks>(t, rows - register_rows);
  else
    multiply<1, kBlocks>(t, 0);
}

}  // namespace

bool has_integer_amx() {
  return processor().amx;
}

void multiply_on_amx(const IntegerTile& tile, int64_t blocks, int64_t rows, int64_t register_rows) {
  (blocks == 2 ? compute<2> : compute<1>)(tile, rows, register_rows);
}

#else

bool has_integer_amx() {
  return false;
}

void multiply_on_amx(const IntegerTile&, int64_t, int64_t, int64_t) {}

#endif

}  // namespace backplane::cpu

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

// The second tile begins at row `second` and may overlap the first: rows in both have the same sums in both.
template <int kTiles, int kBlocks>
[[gnu::always_inline]] inline void multiply(const IntegerTile& t, int64_t second) {
  const auto bytes = [](const uint32_t* words) { return reinterpret_cast<const std::byte*>(words); };
  const int64_t y_row = t.y_row * kWord;
  auto* y = reinterpret_cast<std::byte*>(t.y);
  amx::load_sums<kTiles, kBlocks>(y, y + second * y_row, y_row);
  amx::add_products<amx::SignedByUnsigned, kTiles, kBlocks>({{bytes(t.a), bytes(t.a + second * t.groups)},
                                                             t.groups * kWord,
                                                             {bytes(t.b), bytes(t.b + t.b_block)},
                                                             kAmxGroups * kBlock * kWord,
                                                             t.groups / kAmxGroups});
  amx::store_sums<kTiles, kBlocks>(y, y + second * y_row, y_row);
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

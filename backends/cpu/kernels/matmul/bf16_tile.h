// SPDX-License-Identifier: Apache-2.0
// The inner loop of a product of bf16 values with fp32 sums, on AMX's tile registers (kernels/simd/amx.h).
#pragma once

#include <cstdint>

namespace backplane::cpu {

inline constexpr int64_t kBf16Step = 32, kBf16Columns = 16;  // values of k in a step; columns of B in a block
inline constexpr int64_t kMaxBf16Rows = 32;                  // maximum rows of a tile

struct Bf16Tile {
  const uint16_t* a;  // [row][k], padded to whole steps
  int64_t a_row;      // elements from one row to the next
  const uint16_t* b;  // blocks of B: [step][pair of rows, of 16][column][row of the pair]
  int64_t b_block;    // elements from one block of columns to the next
  int64_t steps;
  const float* starts;  // the initial value of each column's sums
  float* y;
  int64_t y_row;  // elements from one row to the next
};

// Whether the processor and the compiler have AMX.
bool has_bf16_tiles();

// Computes a tile of `rows` rows and one or two blocks of columns. The calling thread must hold amx::TileRegisters of
// `register_rows` rows, which is at least half of `rows` and at most `rows`.
void multiply_bf16(const Bf16Tile& tile, int64_t blocks, int64_t rows, int64_t register_rows);

// Rounds floats to bf16, ties to even. Subnormal numbers become 0. Requires has_bf16_tiles().
void round_to_bf16(const float* x, int64_t count, uint16_t* y);

}  // namespace backplane::cpu

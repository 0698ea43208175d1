// SPDX-License-Identifier: Apache-2.0
// The inner loop of a product of 8-bit integers. A tile is some rows and one or two blocks of columns, whose 32-bit
// sums stay in registers. A tile of up to kRowsOfWideTiles rows may have four blocks, so that additions do not wait for
// each other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::cpu {

// A group is four bytes of packed values of a row or column: see IntegerTiles::bytes. Each group of a row is multiplied
// by the group with the same index of each column, and the products are summed modulo 2^32.
struct IntegerTile {
  const uint32_t* a;  // [group][row]
  const uint32_t* b;  // [group][column of a block]
  int64_t b_block;    // elements of b from one block of columns to the next
  int64_t groups;
  // The initial value of a sum is column_zero · row_rest - column_sum · row_zero, which accounts for the zero points.
  const uint32_t *row_zero, *row_rest, *column_zero, *column_sum;
  uint32_t* y;
  int64_t y_row;  // elements of y from one row to the next
};

inline constexpr int64_t kRowsOfWideTiles = 2;

using IntegerTileKernel = void (*)(const IntegerTile& tile);

// How the processor multiplies 8-bit integers.
struct IntegerTiles {
  int64_t lanes;  // columns per block
  int64_t max_rows;
  // Whether a group has four 8-bit values, signed in A and unsigned in B; otherwise it has two 16-bit values.
  bool bytes;
  IntegerTileKernel (*kernel)(int64_t blocks, int64_t rows);  // 4 blocks for up to kRowsOfWideTiles rows only

  int64_t group() const { return bytes ? 4 : 2; }
};

// Returns the best tiles that processor() allows.
const IntegerTiles& integer_tiles();

}  // namespace backplane::cpu

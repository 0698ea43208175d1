// SPDX-License-Identifier: Apache-2.0
// The innermost part of a product of 8-bit integers: some rows with one or two blocks of columns, whose 32-bit sums
// stay in registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::cpu {

// A group is four bytes of a row's or column's values, which are multiplied at once. Sums are modulo 2^32.
struct IntegerTile {
  const uint32_t* a;  // [group][row]
  const uint32_t* b;  // [group][column of a block]
  int64_t b_block;    // groups from one block of columns to the next
  int64_t groups;
  // A sum begins with column_zero · row_rest - column_sum · row_zero.
  const uint32_t *row_zero, *row_rest, *column_zero, *column_sum;
  uint32_t* y;
  int64_t y_row;  // sums from one row to the next
};

using IntegerTileKernel = void (*)(const IntegerTile& tile);

// How the processor multiplies 8-bit integers.
struct IntegerTiles {
  int64_t lanes;     // columns per block
  int64_t max_rows;  // rows per tile
  // Whether a group has four bytes, signed in A and unsigned in B; otherwise it has two 16-bit numbers.
  bool bytes;
  IntegerTileKernel (*kernel)(int64_t blocks, int64_t rows);

  int64_t group() const { return bytes ? 4 : 2; }
};

// Returns the best tiles that processor() allows.
const IntegerTiles& integer_tiles();

}  // namespace backplane::cpu

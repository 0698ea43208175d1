// SPDX-License-Identifier: Apache-2.0
// The inner loop of a product of 8-bit integers on AMX's tile registers. Operands are packed as for IntegerTiles with
// groups of four bytes, but A is [row][group], and the number of groups is a multiple of kAmxGroups.
#pragma once

#include "kernels/integer/integer_tile.h"

namespace backplane::cpu {

inline constexpr int64_t kAmxGroups = 16, kMaxAmxRows = 32;  // groups of a step; rows of a tile

// Whether the processor and the compiler have AMX.
bool has_integer_amx();

// Computes a tile of `rows` rows and one or two blocks of 16 columns. The calling thread must hold amx::TileRegisters
// of `register_rows` rows, which is at least half of `rows` and at most `rows`.
void multiply_on_amx(const IntegerTile& tile, int64_t blocks, int64_t rows, int64_t register_rows);

}  // namespace backplane::cpu

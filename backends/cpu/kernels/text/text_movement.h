// SPDX-License-Identifier: Apache-2.0
// Operators that move or compare elements, for string tensors.
#pragma once

#include <span>
#include <vector>

#include "runtime/row.h"

namespace backplane::cpu {

// For each row of `numbers` with kMovesTexts or kRanksTexts, returns a row for the same operator on strings.
std::vector<Row> text_movement_rows(std::span<const Row> numbers);

}  // namespace backplane::cpu

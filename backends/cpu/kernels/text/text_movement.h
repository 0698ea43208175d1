// SPDX-License-Identifier: Apache-2.0
// Operators that move or compare elements, for tensors of strings.
#pragma once

#include <span>
#include <vector>

#include "runtime/row.h"

namespace backplane::cpu {

// Returns a row that accepts strings for each row of `numbers` whose operator only moves or compares elements.
std::vector<Row> text_movement_rows(std::span<const Row> numbers);

}  // namespace backplane::cpu

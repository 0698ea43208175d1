// SPDX-License-Identifier: Apache-2.0
// Operators that move or compare elements, for tensors of strings.
#pragma once

#include <span>
#include <vector>

#include "runtime/row.h"

namespace backplane::cpu {

// For each of these rows whose operator only moves or compares elements, a row that accepts strings.
std::vector<Row> text_movement_rows(std::span<const Row> numbers);

}  // namespace backplane::cpu

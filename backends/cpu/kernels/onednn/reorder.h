// SPDX-License-Identifier: Apache-2.0
// Copies between the formats of runtime/format.h.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

// Creates a step that copies input 0 in format `from` to output 0 in format `to`. One of the two formats must be dense.
// Elements are floats if the other is blocked, bytes if it is channels-last.
std::unique_ptr<Step> make_reorder(const Shape& shape, Format from, Format to);

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// Copies between the formats of runtime/format.h.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

// A step that copies input 0 into output 0 of the other format; one of the two formats is dense.
std::unique_ptr<Step> make_reorder(const Shape& shape, Format from, Format to);

}  // namespace backplane::cpu

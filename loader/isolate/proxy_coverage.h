// SPDX-License-Identifier: Apache-2.0
// The functions of an isolated backend's coverage table.
#pragma once

#include <cstdint>

#include "backplane/plugin.h"

namespace backplane::isolate {

// Fills the table. Optional functions that the library lacks stay null.
void fill_coverage_table(uint32_t offered, bp_coverage_api_t& out);

}  // namespace backplane::isolate

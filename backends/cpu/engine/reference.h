// SPDX-License-Identifier: Apache-2.0
// BACKPLANE_CPU_REFERENCE=1, or the option cpu.reference=1: every operator runs by its definition. No fusion, no blocked
// tensors, no oneDNN where there is plain code. For comparison; the setting holds for the whole process.
#pragma once

namespace backplane::cpu {

bool reference_only();
void set_reference_only(bool only);

}  // namespace backplane::cpu

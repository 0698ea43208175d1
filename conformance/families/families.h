// SPDX-License-Identifier: Apache-2.0
// All families: the operators of the oracle, and their cases.
#pragma once

namespace backplane::conform {

// Registers every family with the oracle (judge/oracle.h) and the list of cases (cases/cases.h). A program calls this
// once, before it uses either.
void use_families();

}  // namespace backplane::conform

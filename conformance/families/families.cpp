// SPDX-License-Identifier: Apache-2.0
#include "families/families.h"

#include "cases/cases.h"
#include "judge/oracle.h"

namespace backplane::conform {

// Declares what the files oracle.cpp and cases.cpp of each family define.
#define BACKPLANE_ENTRY(family)                   \
  std::span<const Operator> family##_operators(); \
  void add_##family##_cases(OpCases& cases);
#include "families.inc"
#undef BACKPLANE_ENTRY

namespace {

constexpr FamilyOperators kOperators[] = {
#define BACKPLANE_ENTRY(family) family##_operators,
#include "families.inc"
#undef BACKPLANE_ENTRY
};

constexpr AddFamilyCases kCases[] = {
#define BACKPLANE_ENTRY(family) add_##family##_cases,
#include "families.inc"
#undef BACKPLANE_ENTRY
};

}  // namespace

void use_families() {
  set_operators(kOperators);
  set_op_cases(kCases);
}

}  // namespace backplane::conform

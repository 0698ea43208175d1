// SPDX-License-Identifier: Apache-2.0
// main() of tests that use the oracle or the cases of operators.
#include <gmock/gmock.h>

#include "families/families.h"

int main(int argc, char** argv) {
  backplane::conform::use_families();
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

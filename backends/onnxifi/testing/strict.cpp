// SPDX-License-Identifier: Apache-2.0
// A test library that follows operator set 10 to the letter: Gather, Scatter and OneHot count indices from the start,
// so that -1 is outside the tensor.
#include "vendor.h"

struct Strict : vendor::Traits {
  static constexpr const char* kName = "Strict";
  static constexpr int64_t kOpset = 10;
  static constexpr bool kHasIndices = true;
};
VENDOR_LIBRARY(Strict)

// SPDX-License-Identifier: Apache-2.0
// A test library that accepts every model with the status FALLBACK: it emulates operators.
#include "vendor.h"

struct Emulated : vendor::Traits {
  static constexpr const char* kName = "Emulated";
  static constexpr bool kEmulates = true;
};
VENDOR_LIBRARY(Emulated)

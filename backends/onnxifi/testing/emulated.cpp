// SPDX-License-Identifier: Apache-2.0
// A test library that returns FALLBACK, which means emulation, for every model that it accepts.
#include "vendor.h"

struct Emulated : vendor::Traits {
  static constexpr const char* kName = "Emulated";
  static constexpr bool kEmulates = true;
};
VENDOR_LIBRARY(Emulated)

// SPDX-License-Identifier: Apache-2.0
// Identifies inputs and outputs by their position, whatever their names are.
#include "vendor.h"

struct Positional : vendor::Traits {
  static constexpr const char* kName = "Positional";
  static constexpr bool kByPosition = true;
};
VENDOR_LIBRARY(Positional)

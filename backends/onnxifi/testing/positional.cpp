// SPDX-License-Identifier: Apache-2.0
// A test library that identifies inputs and outputs by their position and ignores their names. Its own
// name is not ASCII.
#include "vendor.h"

struct Positional : vendor::Traits {
  static constexpr const char* kName = "Posición™";
  static constexpr bool kByPosition = true;
};
VENDOR_LIBRARY(Positional)

// SPDX-License-Identifier: Apache-2.0
// Says of every model that it runs by emulation.
#include "vendor.h"

struct Emulated : vendor::Traits {
  static constexpr const char* kName = "Emulated";
  static constexpr bool kEmulates = true;
};
VENDOR_LIBRARY(Emulated)

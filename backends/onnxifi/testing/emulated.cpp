// SPDX-License-Identifier: Apache-2.0
// Reports that it emulates every model (FALLBACK).
#include "vendor.h"

struct Emulated : vendor::Traits {
  static constexpr const char* kName = "Emulated";
  static constexpr bool kEmulates = true;
};
VENDOR_LIBRARY(Emulated)

// SPDX-License-Identifier: Apache-2.0
// A test library that accepts weights only as descriptors: it rejects models with initializers as invalid.
#include "vendor.h"

struct Descriptors : vendor::Traits {
  static constexpr const char* kName = "Descriptors";
  static constexpr bool kWeightsAsDescriptors = true;
};
VENDOR_LIBRARY(Descriptors)

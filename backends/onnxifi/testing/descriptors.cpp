// SPDX-License-Identifier: Apache-2.0
// Accepts weights only as descriptors: a model with initializers is invalid.
#include "vendor.h"

struct Descriptors : vendor::Traits {
  static constexpr const char* kName = "Descriptors";
  static constexpr bool kWeightsAsDescriptors = true;
};
VENDOR_LIBRARY(Descriptors)

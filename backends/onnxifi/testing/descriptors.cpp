// SPDX-License-Identifier: Apache-2.0
// Takes weights by descriptors alone: a model with initializers is wrong to it.
#include "vendor.h"

struct Descriptors : vendor::Traits {
  static constexpr const char* kName = "Descriptors";
  static constexpr bool kWeightsAsDescriptors = true;
};
VENDOR_LIBRARY(Descriptors)

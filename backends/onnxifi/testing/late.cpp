// SPDX-License-Identifier: Apache-2.0
// A test library that keeps the pointers passed to onnxSetGraphIO, and reads descriptors, shapes and names at each run.
#include "vendor.h"

struct Late : vendor::Traits {
  static constexpr const char* kName = "Late";
  static constexpr bool kReadsDescriptorsLate = true;
};
VENDOR_LIBRARY(Late)

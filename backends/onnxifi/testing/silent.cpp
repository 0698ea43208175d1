// SPDX-License-Identifier: Apache-2.0
// A test library that reports nothing about itself.
#include "vendor.h"

struct Silent : vendor::Traits {
  static bool knows(onnxBackendInfo) { return false; }
};
VENDOR_LIBRARY(Silent)

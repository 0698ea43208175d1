// SPDX-License-Identifier: Apache-2.0
// A test library that does what ONNXIFI specifies, with two backends.
#include "vendor.h"

struct Plain : vendor::Traits {
  static constexpr size_t kBackends = 2;
};
VENDOR_LIBRARY(Plain)

// SPDX-License-Identifier: Apache-2.0
// Does what ONNXIFI specifies: two backends, everything reported, runs on a thread of its own.
#include "vendor.h"

struct Plain : vendor::Traits {
  static constexpr size_t kBackends = 2;
};
VENDOR_LIBRARY(Plain)

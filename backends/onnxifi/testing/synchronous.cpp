// SPDX-License-Identifier: Apache-2.0
// A test library whose onnxRunGraph returns when the run is complete. There is no output event, and calls must not
// overlap.
#include "vendor.h"

struct Synchronous : vendor::Traits {
  static constexpr const char* kName = "Synchronous";
  static constexpr vendor::Runs kRuns = vendor::Runs::kInCall;
  static constexpr bool kReportsEvent = false;
  static constexpr bool kThreadSafe = false;
};
VENDOR_LIBRARY(Synchronous)

// SPDX-License-Identifier: Apache-2.0
// Runs when the output event is waited for; the event's state does not change before.
#include "vendor.h"

struct AtWait : vendor::Traits {
  static constexpr const char* kName = "At wait";
  static constexpr vendor::Runs kRuns = vendor::Runs::kAtWait;
};
VENDOR_LIBRARY(AtWait)

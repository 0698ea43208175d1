// SPDX-License-Identifier: Apache-2.0
// A test library that runs a graph only when the output event is waited for; until then the event's state does not
// change.
#include "vendor.h"

struct AtWait : vendor::Traits {
  static constexpr const char* kName = "At wait";
  static constexpr vendor::Runs kRuns = vendor::Runs::kAtWait;
};
VENDOR_LIBRARY(AtWait)

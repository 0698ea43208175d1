// SPDX-License-Identifier: Apache-2.0
#include "engine/cost.h"

#include <algorithm>

#include "backplane/sdk/cost.hpp"

namespace backplane::gpu {

double expected_seconds(const DeviceCaps& caps, const sdk::Node& node) {
  const std::optional<double> bytes = sdk::bytes_moved(node);
  if (!bytes) return 0;
  return caps.throughput.launch_seconds +
         std::max(sdk::operations(node) / caps.reported_flops(), *bytes / caps.reported_bandwidth());
}

}  // namespace backplane::gpu

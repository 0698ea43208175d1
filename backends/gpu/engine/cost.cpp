// SPDX-License-Identifier: Apache-2.0
#include "engine/cost.h"

#include <algorithm>

#include "backplane/sdk/cost.hpp"

namespace backplane::gpu {

double expected_seconds(const Facts& facts, const sdk::Node& node) {
  constexpr double kEfficiency = 0.5;  // of the peak that products and convolutions reach
  const std::optional<double> bytes = sdk::bytes_moved(node);
  if (!bytes) return 0;
  return facts.rates.launch_seconds +
         std::max(sdk::operations(node) / (facts.rates.flops * kEfficiency), *bytes / facts.reported_bandwidth());
}

}  // namespace backplane::gpu

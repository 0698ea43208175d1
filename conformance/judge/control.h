// SPDX-License-Identifier: Apache-2.0
// Estimates for operators with bodies: If, Loop, Scan.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "judge/estimate.h"

namespace backplane::conform {

constexpr int64_t kMaxLoopSteps = 1 << 10;  // of one Loop or Scan
// Computes a node with bodies from its inputs (NULL if omitted) and from `around`, which has one entry for each value
// of the graph that contains the node. Throws std::invalid_argument on errors, which include a Loop or Scan of more
// than kMaxLoopSteps steps.
using Control = std::vector<Estimate> (*)(const NodeSpec& node, const std::vector<const Estimate*>& inputs,
                                          const std::vector<Estimate>& around, bool flushes);
struct ControlOperator {
  std::string_view name;
  std::vector<uint32_t> versions;  // see Operator::versions
  Control compute;
};
std::span<const ControlOperator> control_operators();
// NULL if `op` is not a control operator.
Control find_control(std::string_view op);

}  // namespace backplane::conform

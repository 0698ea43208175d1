// SPDX-License-Identifier: Apache-2.0
// Graphs written by hand, with their inputs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cases/random.h"
#include "judge/oracle.h"

namespace backplane::conform {

// A graph that is compiled once and run on one or more sets of inputs.
struct NetworkCase {
  std::string name;  // "Loop/until"
  std::string_view profile;
  struct Runs {
    GraphSpec spec;
    std::vector<std::vector<onnx::Tensor>> inputs;
  };
  Runs (*make)(Random& random, uint32_t opset);
};
std::span<const NetworkCase> control_networks();
std::span<const NetworkCase> dynamic_networks();

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// A graph and what it is run on, as the minimiser cuts it down.
#pragma once

#include <compare>
#include <vector>

#include "cases/network.h"

namespace backplane::conform {

// What a smaller candidate has less of, the most important first. Every step of the minimiser lowers it, so it ends.
struct Size {
  uint64_t nodes = 0, values = 0, elements = 0,
           irregularities = 0;  // oddities: attributes and elements other than 0 and 1
  auto operator<=>(const Size&) const = default;
};
Size size_of(const Network& candidate);

// Drops nodes, values and inputs that no output needs, and derives types and shapes of what is computed. False if the
// candidate is not a graph that the oracle can compute.
bool recompute(Network& candidate);

// What the oracle says that each value is, rounded to its type; values that nothing computes are empty.
std::vector<onnx::Tensor> computed_values(const Network& candidate);

}  // namespace backplane::conform

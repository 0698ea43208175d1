// SPDX-License-Identifier: Apache-2.0
// A graph and its inputs while they are being minimized.
#pragma once

#include <compare>
#include <vector>

#include "cases/network.h"

namespace backplane::conform {

// Every step reduces the size of the graph, so the minimizer terminates. Sizes are compared member by member.
struct Size {
  uint64_t nodes = 0, values = 0, elements = 0,
           irregularities = 0;  // `irregularities`: attribute values and floats other than 0 and 1
  auto operator<=>(const Size&) const = default;
};
Size size_of(const Network& candidate);

// Drops nodes, values and inputs that no output needs, and derives the types and shapes of computed values. Returns
// false if the oracle cannot compute the candidate, or if no node computes one of the outputs.
bool recompute(Network& candidate);

// The oracle's estimate of each value, rounded to its type. Values that are not computed are empty.
std::vector<onnx::Tensor> computed_values(const Network& candidate);

}  // namespace backplane::conform

// SPDX-License-Identifier: Apache-2.0
// Names of the SDK and conditions that the rows of all operator families share.
#pragma once

#include <span>

#include "engine/planner.h"
#include "engine/row.h"

namespace backplane::gpu {

using sdk::accepted;
using sdk::expect;
using sdk::Form;
using sdk::kAnything, sdk::kBooleans, sdk::kFloats, sdk::kIntegers, sdk::kNumbers, sdk::kSignedIntegers;
using sdk::kBinary, sdk::kBinaryTest, sdk::kUnary, sdk::kUnaryOpen, sdk::kUnaryTest, sdk::kVariadic;
using sdk::kUnsignedIntegers, sdk::one;
using sdk::Node;
using sdk::Value;
using sdk::Verdict;

inline Verdict accept() {
  return sdk::yes();
}

// Source code of a float literal that has exactly this value, for kernels.
std::string literal(float value);

// All inputs have the same type.
Verdict same_types(const Node& node);
// Input `slot` is omitted, or the host knows its bytes before the node is planned: it is a constant, or follows from
// extents and constants (engine/host_value.h), or it is an input of the graph on which the extents of the node's
// outputs do not depend.
Verdict known_on_host(const Node& node, uint32_t slot);

}  // namespace backplane::gpu

// SPDX-License-Identifier: Apache-2.0
// Shared by the rows of all families: names of the SDK, and conditions.
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

// A number as an exact literal in kernels.
std::string literal(float value);

// Conditions that many rows share.
Verdict same_types(const Node& node);  // of all inputs
// Input `slot` is omitted, or its bytes can be read on the host before the node is planned: it is a constant, or an
// input of the graph while the extents of all results are known without it.
Verdict known_on_host(const Node& node, uint32_t slot);

}  // namespace backplane::gpu

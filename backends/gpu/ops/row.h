// SPDX-License-Identifier: Apache-2.0
// How an operator is implemented: a row of its family's table.
#pragma once

#include <span>

#include "backplane/sdk/expect.hpp"
#include "backplane/sdk/table.hpp"
#include "engine/planner.h"

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

// An operator from one version of its operator set on, until a later row of the same operator.
struct Row {
  std::string_view domain;
  std::string_view type;
  uint32_t since_version;
  bp_dtype_set_t types;  // that input 0 may have, if the device has them
  Form form;
  // What else must hold; NULL: nothing. Asked for coverage and again before `emit`. Ranks are known, operands are
  // tensors of types that the device has; extents may be unknown (-1).
  Verdict (*supports)(const Node& node);
  void (*emit)(Emit& e, std::string_view with);
  std::string_view with = {};  // a formula or a name, for the rows that share `emit`

  // All of that, and in what time the device is expected to run the node.
  Verdict judge(const Node& node, const sdk::Asked<Facts>& asked) const;
};

inline Verdict accept() {
  return sdk::yes();
}

// A number as kernels write it, exact.
std::string literal(float value);

// Conditions that many rows share.
Verdict same_types(const Node& node);  // of all inputs
// Input `slot` is omitted, or its bytes can be read on the host before the node is planned: it is a constant, or an
// input of the model while the extents of all results are known without it.
Verdict known_on_host(const Node& node, uint32_t slot);

}  // namespace backplane::gpu

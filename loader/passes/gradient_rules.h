// SPDX-License-Identifier: Apache-2.0
// The derivatives of operators, in terms of other operators.
#pragma once

#include <string_view>
#include <vector>

#include "ops/upgrade/rewrite.h"

namespace backplane::model {

// The differentiation of one node between a Gradient's y and its xs.
struct Step {
  ops::Rewrite& r;                 // inserts nodes before the Gradient node
  const Node node;                 // a copy, because r grows the vector that contains the original
  const ValueId g;                 // the gradient of output 0
  const std::vector<bool> wanted;  // by input: whether it depends on an x
  std::vector<ValueId> found;      // by input: its gradient or BP_NONE; set by the rule

  ValueId x(size_t slot = 0) const { return node.input(slot); }
  ValueId y() const { return node.outputs[0]; }
  Type type(ValueId value) const { return r.graph.values[value].type; }
  bool wants(size_t slot) const { return slot < wanted.size() && wanted[slot]; }

  void set_gradient(size_t slot, ValueId gradient) { found[slot] = gradient; }
  // Like set_gradient, for a `gradient` in the output's shape: sums it over the axes along which the input was
  // broadcast.
  Status set_summed_gradient(size_t slot, ValueId gradient);
  // Returns `gradient`, of type `from`, summed over the axes along which `to` was broadcast to `from`.
  Result<ValueId> sum_to(ValueId gradient, const Type& from, const Type& to);
  // Returns the error "node … has no derivative …: `why`".
  Status refuse(std::string_view why) const;
};

using GradientRule = Status (*)(Step&);

// The rule for the operator of `node`; null if there is none.
GradientRule gradient_rule(const Node& node);

}  // namespace backplane::model

// SPDX-License-Identifier: Apache-2.0
// The derivative of each operator, in terms of other operators.
#pragma once

#include <string_view>
#include <vector>

#include "ops/upgrade/rewrite.h"

namespace backplane::model {

// One node on the way back from y to the xs.
struct Step {
  ops::Rewrite& r;                 // inserts nodes ahead of the Gradient node
  const Node node;                 // a copy: r grows the vector that contains the original
  const ValueId g;                 // the gradient of output 0
  const std::vector<bool> wanted;  // by input: whether it depends on an x
  std::vector<ValueId> found;      // by input: its gradient, or BP_NONE; filled by a rule

  ValueId x(size_t slot = 0) const { return node.input(slot); }
  ValueId y() const { return node.outputs[0]; }
  Type type(ValueId value) const { return r.graph.values[value].type; }
  bool wants(size_t slot) const { return slot < wanted.size() && wanted[slot]; }

  void set_gradient(size_t slot, ValueId gradient) { found[slot] = gradient; }
  // Like set_gradient, but `gradient` has the output's shape and is first summed to the input's.
  Status set_summed_gradient(size_t slot, ValueId gradient);
  // Returns `gradient`, of type `from`, summed over the axes along which `to` was broadcast to `from`.
  Result<ValueId> sum_to(ValueId gradient, const Type& from, const Type& to);
  // Returns the error "node … has no derivative …: `why`".
  Status refuse(std::string_view why) const;
};

using GradientRule = Status (*)(Step&);

// Null: the operator of `node` has no rule.
GradientRule gradient_rule(const Node& node);

}  // namespace backplane::model

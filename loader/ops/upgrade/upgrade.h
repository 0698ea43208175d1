// SPDX-License-Identifier: Apache-2.0
// Upgrades operators from the forms in a file to the newest ones. A table has a function for each change of an operator
// that affects more than types.
#pragma once

#include <span>
#include <string_view>

#include "ir/graph.h"
#include "ops/schema/schema.h"

namespace backplane::ops {

class Rewrite;
using UpgradeFunction = Status (*)(Rewrite&);

// Upgrades a node from the form before `to_version` to the form of `to_version`.
struct Upgrade {
  std::string_view domain;
  std::string_view op;
  uint32_t to_version;
  UpgradeFunction function;
};

std::span<const Upgrade> all_upgrades();
// The upgrade to form `to`; null if only types change.
const Upgrade* find_upgrade(const Schema& to);
// For changes whose defaults keep the old meaning. A node so upgraded can be downgraded again.
Status unchanged(Rewrite&);

// Upgrades every node of known domains to the newest form that is not deprecated, and writes out its default
// attributes. BP_UNSUPPORTED names a node that has no equivalent newer form.
Status upgrade(model::Model& model);
// Writes out the defaults of attributes that a node omits.
void write_defaults(model::Node& node);

}  // namespace backplane::ops

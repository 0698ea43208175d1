// SPDX-License-Identifier: Apache-2.0
// From the operator forms in a file to the newest ones. A table says what each change of an operator means for a node;
// a change without an entry is one of types only.
#pragma once

#include <span>
#include <string_view>

#include "ir/graph.h"
#include "ops/schema/schema.h"

namespace backplane::ops {

class Rewrite;
using UpgradeFunction = Status (*)(Rewrite&);

// Takes a node from the form before `to_version` to that of `to_version`.
struct Upgrade {
  std::string_view domain;
  std::string_view op;
  uint32_t to_version;
  UpgradeFunction function;
};

std::span<const Upgrade> all_upgrades();
// What happens to a node that moves up to form `to`; null where only types change.
const Upgrade* find_upgrade(const Schema& to);
// The function of entries that only add what defaults to the old meaning. Such a node can move down again.
Status unchanged(Rewrite&);

// Brings every node of known domains to the newest form that has a meaning, and writes out its default attributes.
// BP_UNSUPPORTED names what has no faithful newer form.
Status upgrade(model::Model& model);
// Writes out the attributes that a node leaves to their defaults.
void write_defaults(model::Node& node);

}  // namespace backplane::ops

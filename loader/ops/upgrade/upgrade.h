// SPDX-License-Identifier: Apache-2.0
// Upgrades operators from their forms in a file to the newest forms. A table has an entry for each change of an
// operator that does more than allow other types, values or shapes.
#pragma once

#include <span>
#include <string_view>

#include "ir/graph.h"
#include "ops/schema/schema.h"

namespace backplane::ops {

class Rewrite;
using UpgradeFunction = Status (*)(Rewrite&);

// Upgrades a node to the form of `to_version` from the form before it.
struct Upgrade {
  std::string_view domain;
  std::string_view op;
  uint32_t to_version;
  UpgradeFunction function;
};

std::span<const Upgrade> all_upgrades();
// The upgrade to form `to`; null if that form only extends the previous one.
const Upgrade* find_upgrade(const Schema& to);
// An upgrade that does nothing, for changes whose new defaults keep the old meaning. view/op_versions.cpp can show a
// node with these defaults to a device in the older form.
Status unchanged(Rewrite&);

// Upgrades every node of a known domain to its newest form that is not deprecated, and writes out default attributes.
// If a node has no equivalent newer form, returns BP_UNSUPPORTED with its name.
Status upgrade(model::Model& model);
// Adds the attributes that a node omits, with their defaults. The node must have a schema.
void write_defaults(model::Node& node);

}  // namespace backplane::ops

// SPDX-License-Identifier: Apache-2.0
// Identity nodes, which passes add where a value must have a second name.
#pragma once

#include "ir/graph.h"

namespace backplane::model {

// Returns a node `to` = Identity(`from`) with a new id. It is not in a graph yet.
Node make_identity(Model& model, ValueId from, ValueId to);

}  // namespace backplane::model

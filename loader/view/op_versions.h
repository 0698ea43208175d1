// SPDX-License-Identifier: Apache-2.0
// Finds older forms of nodes, for plugins that do not support the newest forms.
#pragma once

#include "view/form_limits.h"

namespace backplane::model {

// The form that the node's operator has in version `newest` of its domain, or null if there is none, or if it has
// another meaning or cannot express this node. `written` is the version that the node was written for: what is unknown
// fits the forms of that version. `node.schema` must be set.
const ops::Schema* older_form(const Candidate& candidate, uint32_t newest, uint32_t written);

}  // namespace backplane::model

// SPDX-License-Identifier: Apache-2.0
// Finds older forms of nodes, for plugins that do not support the newest forms.
#pragma once

#include <string>

#include "view/form_limits.h"

namespace backplane::model {

struct OlderForm {
  const ops::Schema* schema = nullptr;
  std::string refusal;  // why `schema` is null, such as "a negative axis needs version 11 of Concat"
};

// The form that the node's operator has in version `newest` of its domain. `schema` is null if there is none, or if it
// has another meaning or cannot express this node. `written` is the version that the node was written for: limits that
// came after it are ignored if the fit is unknown (Fit::kUnknown). `candidate.node.schema` must be set.
OlderForm older_form(const Candidate& candidate, uint32_t newest, uint32_t written);

}  // namespace backplane::model

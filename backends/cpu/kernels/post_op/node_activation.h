// SPDX-License-Identifier: Apache-2.0
// The activation that operators of com.microsoft name in an attribute.
#pragma once

#include "runtime/row.h"

namespace backplane::cpu {

// The activation that `activation`, `activation_alpha`, `activation_beta` and `activation_params` describe; empty if
// there is none.
std::optional<Activation> activation_of(const Node& node);

// Refuses an activation that is not known.
Verdict supports_activation(const Node& node);

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// The activation that operators of com.microsoft name in an attribute.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

// The one that `activation`, `activation_alpha`, `activation_beta` and `activation_params` describe; empty where there
// is none.
std::optional<Activation> activation_of(const Node& node);

// Refuses an activation that is not known.
Verdict supports_activation(const Node& node);

}  // namespace backplane::cpu

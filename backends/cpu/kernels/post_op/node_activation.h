// SPDX-License-Identifier: Apache-2.0
// The activation that operators of com.microsoft name in an attribute.
#pragma once

#include "runtime/row.h"

namespace backplane::cpu {

// Returns the activation that `activation`, `activation_alpha`, `activation_beta` and `activation_params` describe;
// nullopt if it is absent or unknown.
std::optional<Activation> activation_of(const Node& node);

// Refuses an unknown activation.
Verdict supports_activation(const Node& node);

}  // namespace backplane::cpu

// SPDX-License-Identifier: Apache-2.0
// The activation that operators of com.microsoft name in an attribute.
#pragma once

#include "kernels/post_op/post_op.h"
#include "runtime/row.h"

namespace backplane::cpu {

// Returns the activation that the attributes `activation`, `activation_alpha`, `activation_beta` and
// `activation_params` describe; nullopt if `activation` is absent or unknown.
std::optional<Activation> activation_of(const Node& node);

// Refuses nodes with an unknown activation, or with Clip but without both bounds.
Verdict supports_activation(const Node& node);

}  // namespace backplane::cpu

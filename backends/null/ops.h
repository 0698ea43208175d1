// SPDX-License-Identifier: Apache-2.0
// The operators of this backend.
#pragma once

#include <functional>

#include "backplane/sdk.hpp"

namespace null_backend {

// Computes one node. A kernel that needs the node's attributes captures them.
using Kernel = std::function<void(const backplane::sdk::NodeCall& call)>;

// The newest opset of each domain that the rows were written for.
inline constexpr bp_opset_t kOpsets[] = {{{"", 0}, 28, 0}};

// Coverage and compilation use the same rows.
extern const backplane::sdk::OpTable<Kernel> kOps;

}  // namespace null_backend

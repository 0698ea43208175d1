// SPDX-License-Identifier: Apache-2.0
// Graphs cut from models.
#pragma once

#include <cstdint>
#include <optional>

#include "cases/model.h"
#include "cases/network.h"
#include "cases/random.h"

namespace backplane::conform {

// Cuts out a convex graph of 2 to 12 nodes; nullopt if no attempt found one with useful error bounds.
std::optional<Network> cut_from(const Model& model, Random& random, uint32_t opset);

}  // namespace backplane::conform

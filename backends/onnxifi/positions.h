// SPDX-License-Identifier: Apache-2.0
// Steps of downgrade.cpp for operands whose values are indices or bounds. Older forms do not allow negative values, or
// do not define what a value outside the tensor means.
#pragma once

#include <string>

#include "rewrite.h"

namespace onnxifi_backend {

// For Gather, OneHot and ScatterElements: replaces negative constant indices by the equivalent non-negative ones.
// Refuses computed indices of a signed type, which may be negative.
std::string positive_indices(Rewrite&);
// For ScatterElements and ScatterND: refuses the reductions `max` and `min`.
std::string scatter_18(Rewrite&);
std::string scatter_elements_11(Rewrite&);
// If all inputs but the data are constants, replaces negative bounds by equivalent non-negative ones, and clamps all
// bounds to the tensor. Only the end of a slice with a negative step that includes element 0 is then negative.
std::string slice_13(Rewrite&);
// Replaces negative constant axes by the equivalent non-negative ones. Refuses computed axes.
std::string slice_11(Rewrite&);

}  // namespace onnxifi_backend

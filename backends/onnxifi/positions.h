// SPDX-License-Identifier: Apache-2.0
// Steps of downgrade.cpp for operands whose values are indices or bounds. Older forms do not allow negative values, or
// do not define what a value outside the tensor means.
#pragma once

#include <string>

#include "rewrite.h"

namespace onnxifi_backend {

// For Gather, OneHot and ScatterElements: makes negative constant indices count from the start. Refuses computed
// indices of a signed type, which may be negative.
std::string positive_indices(Rewrite&);
std::string scatter_elements_11(Rewrite&);
// Makes negative constant bounds count from the start, and clamps all to the tensor.
std::string slice_13(Rewrite&);
std::string slice_11(Rewrite&);

}  // namespace onnxifi_backend

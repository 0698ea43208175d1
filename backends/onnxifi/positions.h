// SPDX-License-Identifier: Apache-2.0
// Steps of downgrade.cpp for operands whose values are positions. Older forms count positions from the start only, or
// do not say what a position outside the tensor means.
#pragma once

#include <string>

#include "rewrite.h"

namespace onnxifi_backend {

// For Gather, OneHot and ScatterElements: counts constant indices from the start. Refuses computed ones, which may be
// negative.
std::string positive_indices(Rewrite&);
std::string scatter_elements_11(Rewrite&);
// Replaces constant bounds by the positions that they mean.
std::string slice_13(Rewrite&);
std::string slice_11(Rewrite&);

}  // namespace onnxifi_backend

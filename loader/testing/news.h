// SPDX-License-Identifier: Apache-2.0
// How often anything in the process allocated with `new`: the loader and its backends too, for they use the same
// operator.
#pragma once

#include <cstdint>

namespace backplane {

uint64_t news();

}  // namespace backplane

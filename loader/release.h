// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace backplane {

// The loader's own version and build; both come from CMake.
inline constexpr const char* release = BACKPLANE_RELEASE;
inline constexpr const char* build_id = BACKPLANE_BUILD_ID;

}  // namespace backplane

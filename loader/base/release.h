// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace backplane {

// The loader's own version and build; both come from CMake.
inline constexpr const char* kRelease = BACKPLANE_RELEASE;
inline constexpr const char* kBuildId = BACKPLANE_BUILD_ID;

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// The programs that come with the loader.
#pragma once

#include <filesystem>
#include <string_view>

#include "discover/refusal.h"

namespace backplane {

// A program next to the loader: in the build tree and in an installation, with and without lib/<machine>.
// BP_REFUSED_UNTRIED where there is none.
Refusal find_helper(std::string_view name, std::filesystem::path& out_helper);

}  // namespace backplane

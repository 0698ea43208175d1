// SPDX-License-Identifier: Apache-2.0
// Finds the helper programs that are installed with the loader.
#pragma once

#include <filesystem>
#include <string_view>

#include "discover/refusal.h"

namespace backplane {

// Finds a program relative to the loader, in the build tree or in an installation (with or without lib/<machine>).
// BP_REFUSED_UNTRIED if it does not exist, BP_REFUSED_UNTRUSTED if other users can write to it or replace it.
Refusal find_helper(std::string_view name, std::filesystem::path& out_helper);

}  // namespace backplane

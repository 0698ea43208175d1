// SPDX-License-Identifier: Apache-2.0
// What was probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace backplane::tools {

// " (did you mean 'explain'?)" with the nearest of `words`, or nothing when none is near.
std::string suggest(std::string_view seen, const std::vector<std::string>& words);

}  // namespace backplane::tools

// SPDX-License-Identifier: Apache-2.0
// The names in a folder. libstdc++'s directory_iterator allocates where it must not throw, and ends the process when
// there is no memory.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace backplane {

// In byte order, without "." and "..". An error names why the folder could not be read; then there are no names.
std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& out_error);

}  // namespace backplane

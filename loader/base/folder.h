// SPDX-License-Identifier: Apache-2.0
// Lists a folder. Replaces std::filesystem::directory_iterator: libstdc++'s allocates memory in a noexcept function, so
// that running out of memory would end the process.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace backplane {

// The names in a folder, sorted by their bytes, without "." and "..". If the folder cannot be read, sets `out_error`
// and returns no names.
std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& out_error);

}  // namespace backplane

// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace backplane::tools {

// Throw Failure with the path and the system's reason.
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace backplane::tools

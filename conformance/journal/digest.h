// SPDX-License-Identifier: Apache-2.0
// SHA-256, in hexadecimal.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::conform {

std::string sha256(std::string_view bytes);
// Throws std::runtime_error if it cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);
// Of names in order of bytes, each with a line feed: equal digests, equal lists.
std::string sha256_of_list(std::vector<std::string> names);

// A whole file. Throws std::runtime_error.
std::string read_file(const std::filesystem::path& file);
// Throws std::runtime_error.
void write_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace backplane::conform

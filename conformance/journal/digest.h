// SPDX-License-Identifier: Apache-2.0
// SHA-256 in hexadecimal, and functions that read and write whole files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::conform {

std::string sha256(std::string_view bytes);
// The digest of a file of any size. Throws std::runtime_error if the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);
// The digest of the names, sorted by bytes and each followed by a line feed. Lists of the same names have the same
// digest.
std::string sha256_of_list(std::vector<std::string> names);

inline constexpr uint64_t kMaxFile = uint64_t{1} << 30;
// Reads a whole file. Throws std::runtime_error if it cannot be read or has more than `most` bytes.
std::string read_file(const std::filesystem::path& file, uint64_t most = kMaxFile);
// Like read_file, for an untrusted file: refuses symbolic links and everything except regular files.
std::string read_untrusted_file(const std::filesystem::path& file, uint64_t most);
// Throws std::runtime_error if the file cannot be written.
void write_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace backplane::conform

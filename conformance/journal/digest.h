// SPDX-License-Identifier: Apache-2.0
// SHA-256, in hexadecimal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::conform {

std::string sha256(std::string_view bytes);
// The digest of a file of any size. Throws std::runtime_error if it cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);
// The digest of names in byte order, each with a line feed: equal digests, equal lists.
std::string sha256_of_list(std::vector<std::string> names);

inline constexpr uint64_t kMaxFile = uint64_t{1} << 30;
// A whole file, of at most `most` bytes. Throws std::runtime_error.
std::string read_file(const std::filesystem::path& file, uint64_t most = kMaxFile);
// The same for an untrusted file: links are not followed, and only regular files are opened for reading.
std::string read_untrusted_file(const std::filesystem::path& file, uint64_t most);
// Throws std::runtime_error.
void write_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace backplane::conform

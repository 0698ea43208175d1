// SPDX-License-Identifier: Apache-2.0
// SHA-256 in hexadecimal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/whole_file.h"

namespace backplane::conform {

std::string sha256(std::string_view bytes);
// The size in bytes of the largest file that is hashed by default: the loader accepts no larger library.
inline constexpr uint64_t kMaxHashed = uint64_t{8} << 30;
// The digest of a regular file. Throws cli::FileError if it cannot be read or has more than `most` bytes.
std::string sha256_of_file(const std::filesystem::path& file, uint64_t most = kMaxHashed);
// The digest of the names, sorted by bytes and each followed by a line feed. Lists of the same names have the same
// digest.
std::string sha256_of_list(std::vector<std::string> names);

using cli::kMaxFile;
using cli::read_file;
using cli::read_untrusted_file;
using cli::write_file;

}  // namespace backplane::conform

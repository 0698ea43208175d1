// SPDX-License-Identifier: Apache-2.0
// Hashes of files and strings, computed by libsodium.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "discover/file.h"

namespace backplane {

// BLAKE2b-256 or SHA-256 of the whole file, as 64 hexadecimal digits. nullopt if the file cannot be read completely or
// has changed since it was opened.
std::optional<std::string> blake2b_of(const File& file);
std::optional<std::string> sha256_of(const File& file);

// BLAKE2b-256 of a string.
std::string blake2b_of(std::string_view text);

// Identifies this build of the loader: the linker's build id, or the id that CMake generated if there is none.
std::string own_build_id();

}  // namespace backplane
